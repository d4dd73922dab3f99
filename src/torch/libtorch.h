// What Reprise asks of the insides of LibTorch. What differs between versions is in libtorch_versions.h.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/Storage.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::internal::libtorch {

// A handle on a tensor's version counter that does not keep its storage alive. Disabled for inference tensors.
using Version = c10::VariableVersion;

[[nodiscard]] inline const Version& version_of(const at::Tensor& tensor) {
  return torch::autograd::impl::version_counter(tensor);
}

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

[[nodiscard]] inline c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}
[[nodiscard]] inline c10::Storage share(c10::StorageImpl* storage) {
  return c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage));
}
// A new storage of LibTorch's CPU allocator. May throw BudgetError.
[[nodiscard]] c10::Storage new_storage(std::size_t bytes);

// Whether the kernel for the CPU is a function written in Python.
[[nodiscard]] bool is_python_kernel(const c10::OperatorHandle&);

// A dense strided tensor on the CPU that is exactly its bytes: no lazy conjugation, no wrapper, nobody's subclass.
[[nodiscard]] inline bool is_plain(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const c10::DispatchKeySet keys = impl.key_set();
  using Key = c10::DispatchKey;
  return impl.has_storage() && keys.has(Key::CPU) &&
         !keys.has_any(c10::DispatchKeySet(
             {Key::Conjugate, Key::Negative, Key::ZeroTensor, Key::Python, Key::FuncTorchBatched, Key::Functionalize}));
}

// What its elements take, whoever holds them; 0 if it does not say how many there are.
[[nodiscard]] inline Bytes bytes_of_contents(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.has_symbolic_sizes_strides() || tensor.layout() != c10::kStrided) return 0;
  return tensor.numel() * static_cast<Bytes>(tensor.itemsize());
}

// The type of fractions where nobody says another one; of the whole process.
[[nodiscard]] inline at::ScalarType default_type() {
  return c10::get_default_dtype_as_scalartype();
}
inline void default_type(at::ScalarType type) {
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(type));
}

// Dispatch keys that nothing else uses, for interception.h: the first right above the kernels, so that only a kernel
// runs while a generator is locked; the second above everything else.
inline constexpr c10::DispatchKey key_of_draws = c10::DispatchKey::Fake;
inline constexpr c10::DispatchKey key_of_writes = c10::DispatchKey::TESTING_ONLY_GenericMode;

// The state of a CPU generator, without a tensor. The generator is private, or locked by the caller.
struct RandomState {
  at::mt19937 engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
};
[[nodiscard]] RandomState state_of(at::CPUGeneratorImpl&);
void restore(at::CPUGeneratorImpl&, const RandomState&);
[[nodiscard]] std::uint64_t fingerprint(const RandomState&);

// Throws what LibTorch throws when a saved tensor was written since it was saved.
[[noreturn]] void throw_modified(const Version& now, std::uint32_t expected, at::ScalarType, c10::IntArrayRef sizes);

}  // namespace reprise::internal::libtorch
