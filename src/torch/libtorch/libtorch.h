// What Reprise asks of the insides of LibTorch. What differs between versions is in libtorch_versions.h.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>
#include <c10/core/TensorOptions.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

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
// Returns a new storage of LibTorch's allocator for the device. May throw BudgetError.
[[nodiscard]] c10::Storage new_storage(std::size_t bytes, c10::Device = c10::Device(c10::DeviceType::CPU));
// Copies all contents to a storage of the same device, on its current stream.
void copy(const c10::Storage& to, const c10::Storage& from);
// Returns pinned memory of the host: the device copies there and back by itself. Throws c10::Error if it has none.
[[nodiscard]] c10::Storage new_pinned_storage(std::size_t bytes, c10::Device);
// Copies all contents between a device and pinned memory, on the current stream: the host does not wait.
void copy_beside(const c10::Storage& to, const c10::Storage& from);
// Returns the contents, where the host can read them. Waits for the device: not under a lock of ours.
[[nodiscard]] std::vector<std::byte> on_host(const c10::Storage&);

// ---- devices ----

// Returns the keys of a plain tensor with this storage.
[[nodiscard]] inline c10::DispatchKeySet keys_of(const c10::Storage& storage, at::ScalarType dtype) {
  if (storage.device_type() == c10::DeviceType::CPU) return c10::DispatchKeySet(c10::DispatchKey::CPU);
  return c10::DispatchKeySet(c10::computeDispatchKey(dtype, c10::kStrided, storage.device()));
}

// The backends whose tensors are plain: the CPU, and those of accelerators that are devices (counted_device.h).
[[nodiscard]] constexpr std::uint64_t bit_of(c10::BackendComponent backend) {
  return std::uint64_t{1} << (static_cast<unsigned>(backend) - 1);  // as in DispatchKeySet::raw_repr
}
inline constinit std::atomic<std::uint64_t> counted_backends = bit_of(c10::BackendComponent::CPUBit);
void count_backend(c10::Device);
[[nodiscard]] bool is_counted(c10::Device);

// Returns the stream that this thread gives the work of a device to. None for the CPU, which does it at once.
[[nodiscard]] c10::Stream current_stream_of_accelerator(c10::Device);
[[nodiscard]] inline std::optional<c10::Stream> current_stream(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  return current_stream_of_accelerator(device);
}
// Returns whether what this thread gives to the device becomes a part of a graph (CUDA's), instead of running now.
[[nodiscard]] bool is_capturing(c10::Device);
// Makes what this thread gives to the device from now on begin after all that was given to that stream before; and the
// memory is not used for anything else before it ends. Nothing if it is the same stream, or none; and nothing in a
// graph, which cannot wait for what is outside of it: the program has waited before it began the graph.
void use_here(const c10::Storage&, const std::optional<c10::Stream>& made_on);

// ---- tensors ----

// Returns the devices that the operator has a kernel for: the CPU, or accelerators alone, as it is with fused
// operators, cuDNN's and a backend's own. A backend's kernel for whatever has none is not one. Empty: it exists only
// above the kernels.
[[nodiscard]] std::vector<c10::DispatchKey> kernels_of(const c10::OperatorHandle&);

// Returns whether one of them is a function written in Python.
[[nodiscard]] bool is_python_kernel(const c10::OperatorHandle&);

// Returns whether it is a dense strided tensor, on a device that is counted, that is exactly its bytes: no lazy
// conjugation, no wrapper, no subclass.
[[nodiscard]] inline bool is_plain(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  c10::DispatchKeySet keys = impl.key_set();
  using Key = c10::DispatchKey;
  constexpr c10::DispatchKeySet more(
      {Key::Conjugate, Key::Negative, Key::ZeroTensor, Key::Python, Key::FuncTorchBatched, Key::Functionalize});
  return impl.has_storage() && keys.has(Key::Dense) &&
         (keys.raw_repr() & counted_backends.load(std::memory_order_relaxed)) != 0 && !keys.has_any(more);
}

// Returns what its elements take, whoever holds them; 0 if it does not say how many there are.
[[nodiscard]] inline Bytes bytes_of_contents(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.has_symbolic_sizes_strides() || tensor.layout() != c10::kStrided) return 0;
  return tensor.numel() * static_cast<Bytes>(tensor.itemsize());
}

// Returns the type of fractions where none is given; of the whole process.
[[nodiscard]] inline at::ScalarType default_type() {
  return c10::get_default_dtype_as_scalartype();
}
inline void default_type(at::ScalarType type) {
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(type));
}

// Dispatch keys for interception.h: the first right above the kernels, so that only a kernel runs while a generator is
// locked; at the second, LibTorch counts the writes.
inline constexpr c10::DispatchKey key_of_draws = c10::DispatchKey::BackendSelect;
inline constexpr c10::DispatchKey key_of_writes = c10::DispatchKey::ADInplaceOrView;

// Keys of the thread's modes that count or change operators: Python's, vmap's, functorch's, functionalization and
// tracing.
inline constexpr c10::DispatchKeySet keys_of_modes =
    c10::python_ks | c10::DispatchKeySet({c10::DispatchKey::VmapMode, c10::DispatchKey::FuncTorchVmapMode,
                                          c10::DispatchKey::Batched, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                                          c10::DispatchKey::FuncTorchDynamicLayerBackMode,
                                          c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                          c10::DispatchKey::Functionalize, c10::DispatchKey::Tracer});

// Returns an uninitialized tensor, made by the device's own operator; no watcher sees it.
[[nodiscard]] at::Tensor new_bytes(std::int64_t size, c10::Device);

// Returns whether the node is one that LibTorch generates from its formulas.
[[nodiscard]] bool is_of_libtorch(const torch::autograd::Node&);

// Returns whether modes of the program's (TorchDispatchMode) see what this thread runs.
[[nodiscard]] bool any_modes();
// Returns a plain tensor, for LibTorch to make a variable of: the modes of the thread do not see that it is copied
// then.
[[nodiscard]] at::Tensor to_be_copied_unseen(const at::Tensor&);

// Returns whether the program makes a graph of what this thread runs (torch.compile, make_fx, jit.trace and the like)
// or only looks at shapes. Not known below an operator that jit.trace records.
[[nodiscard]] bool is_traced();

// The state of a generator, without a tensor: of LibTorch's own for the CPU, or of an accelerator's, which is a seed
// and its position.
struct CpuRandomState {
  at::mt19937 engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
};
struct SeedAndOffset {
  std::uint64_t seed = 0, offset = 0;
};
using RandomState = std::variant<CpuRandomState, SeedAndOffset>;
// Returns whether its state can be read and set. False if it is of another kind.
[[nodiscard]] bool has_state(c10::GeneratorImpl&);
// Returns its state. The generator is private, or locked by the caller.
[[nodiscard]] RandomState state_of(c10::GeneratorImpl&);
void restore(c10::GeneratorImpl&, const RandomState&);
[[nodiscard]] at::Generator default_generator(c10::Device);
[[nodiscard]] at::Generator new_generator(c10::Device);
[[nodiscard]] std::uint64_t fingerprint(const RandomState&);

// Throws what LibTorch throws when a saved tensor was written since it was saved. `made_by` is ", which is output 0 of
// Mul," or nothing.
[[noreturn]] void throw_modified(const Version& now, std::uint32_t expected, c10::Device, at::ScalarType,
                                 c10::IntArrayRef sizes, const std::string& made_by);

}  // namespace reprise::internal::libtorch
