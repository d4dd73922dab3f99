// Operators of the simulated accelerator that are not just the CPU's kernels: memory, copies, and what LibTorch asks of
// every device under a name of its own.
#include "accelerator/device_operators.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "accelerator/accelerator.h"
#include "accelerator/device_allocator.h"
#include "accelerator/device_generator.h"
#include "accelerator/launch.h"
#include "accelerator/operator_on_device.h"
#include "accelerator/pinned_memory.h"
#include "accelerator/registration.h"

namespace reprise::testing::accelerator {
namespace {

using at::Tensor;
using torch::jit::Stack;

const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

// ---- tensors without contents ----

c10::Device device_or_current(const std::optional<c10::Device>& device) {
  return device && device->has_index() ? *device : c10::Device(type, current_device());
}

Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> scalars, std::optional<at::Layout>,
             std::optional<c10::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_generic(sizes, c10::GetAllocator(type), keys, c10::dtype_or_default(scalars), format);
}

Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<at::ScalarType> scalars,
                     std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(type), keys,
                                           c10::dtype_or_default(scalars));
}

const Tensor& resize(const Tensor& self, c10::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  c10::TensorImpl& tensor = *self.unsafeGetTensorImpl();
  if (tensor.sizes() == sizes && !format) return self;
  tensor.set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve) tensor.empty_tensor_restride(*format);
  const std::size_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                                             static_cast<std::size_t>(tensor.storage_offset()));
  if (tensor.numel() > 0 && bytes > self.storage().nbytes()) resize_storage(self.storage(), bytes);
  return self;
}

// ---- other memory for a tensor ----

Tensor& set_storage(Tensor& self, at::Storage storage, std::int64_t offset, c10::IntArrayRef sizes,
                    c10::IntArrayRef strides) {
  c10::TensorImpl& tensor = *self.unsafeGetTensorImpl();
  tensor.set_storage_keep_dtype(std::move(storage));
  tensor.set_storage_offset(offset);
  if (strides.data() == nullptr) {  // as LibTorch says that there are none
    tensor.set_sizes_contiguous(sizes);
  } else {
    tensor.set_sizes_and_strides(sizes, strides);
  }
  return self;
}
Tensor& set_whole_storage(Tensor& self, at::Storage storage) {
  const auto numbers = static_cast<std::int64_t>(storage.nbytes() / self.itemsize());
  return set_storage(self, std::move(storage), 0, numbers, {});
}
Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}
Tensor& set_nothing(Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  return set_storage(self, c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::GetAllocator(type), true), 0,
                     std::int64_t{0}, {});
}

void record_stream_of(Tensor& self, c10::Stream stream) {
  record_stream(self.storage().data_ptr(), stream);
}

// ---- copies ----

// From one device to another: in the order of both current streams.
void copy_between_devices(const Tensor& from, const Tensor& to) {
  Launch launch("_copy_from", to.device());
  DeviceStream& source = stream_of(current_stream(from.device().index()));
  wait_for_mark(launch.stream(), record_mark(source));
  launch.run([source = launch.memory(from), target = launch.memory(to)]() mutable { target.copy_(source); });
  wait_for_mark(source, record_mark(launch.stream()));
}

// The host goes on at once only if it says so and the memory is pinned.
void copy_from_host(const Tensor& from, const Tensor& to, bool non_blocking) {
  Launch launch("_copy_from", to.device());
  const bool pinned = is_pinned(from.storage().data());
  const Tensor source = pinned ? launch.memory(from) : launch.read_now(from);
  launch.run([source, target = launch.operand(to, true)]() mutable { target.copy_(source); });
  if (pinned) pinned_used_by(from.storage().data(), launch.stream());
  if (!non_blocking) launch.wait();
}
void copy_to_host(const Tensor& from, const Tensor& to, bool non_blocking) {
  Launch launch("_copy_from", from.device());
  const bool pinned = is_pinned(to.storage().data());
  launch.run([source = launch.operand(from), target = launch.memory(to)]() mutable { target.copy_(source); });
  if (pinned) pinned_used_by(to.storage().data(), launch.stream());
  if (!pinned || !non_blocking) launch.wait();
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  const at::RecordFunctionGuard unseen(false);
  if (!on_device(from)) {
    copy_from_host(from, to, non_blocking);
  } else if (!on_device(to)) {
    copy_to_host(from, to, non_blocking);
  } else if (from.device() != to.device()) {
    copy_between_devices(from, to);
  } else {
    Launch launch("_copy_from", to.device());
    launch.run([source = launch.operand(from), target = launch.operand(to, true)]() mutable { target.copy_(source); });
  }
  return to;
}
Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar(const Tensor& self) {
  const at::RecordFunctionGuard unseen(false);
  Launch launch("_local_scalar_dense", self.device());
  const auto number = std::make_shared<at::Scalar>();
  launch.run([number, source = launch.operand(self)] { *number = at::_local_scalar_dense(source); });
  launch.wait();
  return *number;
}

// ---- under names of their own ----

void call_on_cpu(const char* name, Stack& stack) {
  const c10::OperatorHandle operation = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

void convolution(const c10::OperatorHandle& operation, Stack* stack) {
  run_on_device(operation, stack, [](Stack& arguments) { call_on_cpu("aten::convolution", arguments); });
}

void convolution_backward(const c10::OperatorHandle& operation, Stack* stack) {
  run_on_device(operation, stack, [](Stack& arguments) {
    // The CPU's has one argument more, after the weights: the sizes of the bias, or none.
    const Tensor weights = arguments[2].toTensor();
    const bool transposed = arguments[6].toBool();
    const std::int64_t groups = arguments[8].toInt();
    const std::int64_t channels = transposed ? weights.size(1) * groups : weights.size(0);
    const bool bias = arguments[9].toBoolList().get(2);
    arguments.insert(arguments.begin() + 3, bias ? c10::IValue(std::vector<std::int64_t>{channels}) : c10::IValue());
    call_on_cpu("aten::convolution_backward", arguments);
  });
}

// Computes something with a tensor of its own on the host, for which it names no device: see make_default.
void repeat(const c10::OperatorHandle& operation, Stack* stack) {
  run_on_device(operation, stack);
}

// Has no argument for a generator.
std::tuple<Tensor, Tensor> native_dropout(const Tensor& self, double share, std::optional<bool> training) {
  const at::RecordFunctionGuard unseen(false);
  const c10::DeviceGuard guard(self.device());
  Tensor result = at::empty_like(self), kept = at::empty_like(self, self.options().dtype(at::kBool));
  Launch launch("native_dropout", self.device());
  const Tensor input = launch.operand(self);
  Tensor output = launch.operand(result, true), mask = launch.operand(kept, true);
  if (!training.value_or(true)) {
    launch.run([=]() mutable {
      mask.fill_(true);
      output.copy_(input);
    });
  } else {
    launch.run([=, seed = next_seed()]() mutable {
      mask.bernoulli_(1 - share, at::detail::createCPUGenerator(seed));
      at::mul_out(output, input, mask).mul_(share == 1 ? 0.0 : 1.0 / (1.0 - share));
    });
  }
  return {result, kept};
}

// torch::nn::Module::to asks it before it gives a parameter other memory; LibTorch's own list lacks this device.
bool may_have_other_memory(const Tensor& self, const Tensor& from) {
  return self.layout() == at::kStrided && from.layout() == at::kStrided;
}

}  // namespace

void resize_storage(const c10::Storage& storage, std::size_t bytes) {
  const c10::DeviceGuard guard(storage.device());
  c10::DataPtr fresh = storage.allocator()->allocate(bytes);
  const std::size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) c10::getDeviceAllocator(type)->copy_data(fresh.get(), storage.data(), kept);
  storage.set_data_ptr_noswap(std::move(fresh));
  storage.set_nbytes(bytes);
}

void register_operators(const Like& like) {
  using c10::DispatchKey;
  using torch::CppFunction;
  static auto& all = *new torch::Library(torch::Library::IMPL, "aten", DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all.impl("empty.memory_format", empty);
  all.impl("empty_strided", empty_strided);
  all.impl("resize_", resize);
  all.impl("set_.source_Storage_storage_offset", set_storage);
  all.impl("set_.source_Storage", set_whole_storage);
  all.impl("set_.source_Tensor", set_tensor);
  all.impl("set_", set_nothing);
  all.impl("record_stream", record_stream_of);
  all.impl("_copy_from", copy_from);
  all.impl("_copy_from_and_resize", copy_from_and_resize);
  all.impl("_local_scalar_dense", local_scalar);
  all.impl("convolution_overrideable", CppFunction::makeFromBoxedFunction<&convolution>());
  all.impl("convolution_backward_overrideable", CppFunction::makeFromBoxedFunction<&convolution_backward>());
  all.impl("repeat", CppFunction::makeFromBoxedFunction<&repeat>());
  if (!like.draws_on_cpu) all.impl("native_dropout", native_dropout);

  // Copies take numbers as they are, conjugated or negated: LibTorch would copy them first, to copy them plainly.
  for (const DispatchKey key : {DispatchKey::Conjugate, DispatchKey::Negative}) {
    auto& lazy = *new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    lazy.impl("_copy_from", CppFunction::makeFallthrough());
    lazy.impl("_copy_from_and_resize", CppFunction::makeFallthrough());
  }

  static auto& above =
      *new torch::Library(torch::Library::IMPL, "aten", DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  above.impl("_has_compatible_shallow_copy_type", may_have_other_memory);
}

}  // namespace reprise::testing::accelerator
