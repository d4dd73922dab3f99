#include "accelerator/launch.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace reprise::testing::accelerator {
namespace {

const c10::Device host(c10::DeviceType::CPU);

// A CPU tensor like this one on other memory.
at::Tensor tensor_on(c10::DataPtr data, std::size_t bytes, const at::Tensor& like, std::int64_t offset) {
  c10::Storage made(c10::Storage::use_byte_size_t(), bytes, std::move(data), nullptr, false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(made), c10::DispatchKeySet(c10::DispatchKey::CPU), like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), offset);
  // What kernels are told beside the memory: a number of the program's has no say in the type of the result.
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  tensor._set_conj(like.is_conj());
  tensor._set_neg(like.is_neg());
  return tensor;
}

// The value with all tensors in it replaced.
c10::IValue replaced(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& replace,
                     const std::function<at::Tensor(const at::Tensor&)>& replace_index) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(replace(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      const bool there = tensor && tensor->defined();
      list.push_back(there ? std::optional(replace_index(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

}  // namespace

at::Tensor copy_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const std::size_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
  void* const copy = std::malloc(std::max<std::size_t>(bytes, 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (bytes > 0) std::memcpy(copy, tensor.const_data_ptr(), bytes);
  return tensor_on(c10::DataPtr(copy, copy, &std::free, host), bytes, tensor, 0);
}

c10::IValue copy_of(const c10::IValue& value) {
  const auto copy = [](const at::Tensor& tensor) { return copy_of(tensor); };
  return replaced(value, copy, copy);
}

Launch::Launch(std::string name, c10::Device device)
    : kernel_{std::move(name)}, stream_(stream_of(current_stream(device.index()))) {}

at::Tensor Launch::operand(const at::Tensor& tensor, bool written) {
  if (!tensor.defined()) return tensor;
  if (!on_device(tensor)) {
    TORCH_CHECK(tensor.device().is_cpu() && tensor.dim() == 0 && !written, "[accelerator] ", name(),
                ": expected all tensors to be on ", device(), ", and one is on ", tensor.device());
    return read_now(tensor);
  }
  TORCH_CHECK(tensor.device() == device(), "[accelerator] ", name(), ": expected all tensors to be on ", device(),
              ", and one is on ", tensor.device());
  if (written) tensor.storage().mutable_data();  // a copy that was put off until now is made
  return memory(tensor);
}

at::Tensor Launch::read_now(const at::Tensor& tensor) {
  kernel_.bytes += static_cast<std::int64_t>(tensor.nbytes());
  return copy_of(tensor);
}

at::Tensor Launch::memory(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "[accelerator] ", name(), ": no tensors of the layout ",
              tensor.layout());
  kernel_.bytes += static_cast<std::int64_t>(tensor.nbytes());
  const c10::Storage& storage = tensor.storage();
  void* const data = on_device(tensor) ? kernel_address(storage.data()) : const_cast<void*>(storage.data());
  return tensor_on(c10::DataPtr(data, host), storage.nbytes(), tensor, tensor.storage_offset());
}

c10::IValue Launch::operand(const c10::IValue& value, bool written) {
  if (value.isDevice()) return host;
  const auto usual = [&](const at::Tensor& tensor) { return operand(tensor, written); };
  const auto index = [&](const at::Tensor& tensor) { return on_device(tensor) ? operand(tensor) : read_now(tensor); };
  return replaced(value, usual, index);
}

void Launch::run(std::function<void()> kernel) {
  stream_.launch(kernel_, std::move(kernel));
}

void Launch::run_besides(std::function<void()> work) {
  stream_.enqueue([work = std::move(work)](Time&) { work(); });
}

void Launch::wait() {
  stream_.wait(name());
}

}  // namespace reprise::testing::accelerator
