#include "torch/libtorch/libtorch.h"

#define XXH_INLINE_ALL
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <typeinfo>

#include "torch/libtorch/libtorch_versions.h"

namespace reprise::internal::libtorch {
namespace {

// Operators of our own, in the middle of anything: no watcher sees them, and they are not changed.
class Unseen {
 public:
  Unseen()
      : autograd_(c10::autograd_dispatch_keyset_with_ADInplaceOrView),
        autocast_(c10::autocast_dispatch_keyset),
        modes_(keys_of_modes),
        recording_(false) {}

 private:
  const c10::impl::ExcludeDispatchKeyGuard autograd_, autocast_, modes_;
  const at::RecordFunctionGuard recording_;
};

std::uint64_t bit_of_device(c10::Device device) {
  return bit_of(c10::toBackendComponent(c10::computeDispatchKey(at::kFloat, c10::kStrided, device)));
}

// Memory of the host that a device copies to by itself; undefined: there is none.
at::Tensor pinned_bytes(std::int64_t size) {
  static std::atomic<bool> none = false;
  if (none) return {};
  try {
    return at::empty({size}, at::TensorOptions(at::kCPU).dtype(at::kByte).pinned_memory(true));
  } catch (const c10::Error&) {
    none = true;
    return {};
  }
}

at::Tensor bytes_in(const c10::Storage& storage) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), keys_of(storage, at::kByte),
                                                               c10::scalarTypeToTypeMeta(at::kByte));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<std::int64_t>(storage.nbytes())});
  return tensor;
}

}  // namespace

at::Tensor new_bytes(std::int64_t size, c10::Device device) {
  const Unseen unseen;
  return at::empty({size}, at::TensorOptions(device).dtype(at::kByte));
}

bool is_of_libtorch(const torch::autograd::Node& node) {
  return std::string_view(typeid(node).name()).starts_with("N5torch8autograd9generated");
}

bool any_modes() {
  return c10::impl::TorchDispatchModeTLS::any_modes_set();
}

namespace {

class CopiedUnseen final : public c10::TensorImpl {
 public:
  explicit CopiedUnseen(const c10::TensorImpl& like)
      : TensorImpl(c10::Storage(like.storage()), like.key_set(), like.dtype()) {
    copy_tensor_metadata(&like, this, like.version_counter(), true);
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool may_change_metadata) const override {
    auto copy = c10::make_intrusive<TensorImpl>(c10::Storage(storage()), key_set(), dtype());
    copy_tensor_metadata(this, copy.get(), version, may_change_metadata);
    return copy;
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool may_change_metadata) const override {
    const c10::VariableVersion one = std::move(version);
    return shallow_copy_and_detach(one, may_change_metadata);
  }
};

}  // namespace

at::Tensor to_be_copied_unseen(const at::Tensor& tensor) {
  return at::Tensor(c10::make_intrusive<CopiedUnseen>(*tensor.unsafeGetTensorImpl()));
}

bool is_traced() {
  using Modes = c10::impl::TorchDispatchModeTLS;
  using Key = c10::impl::TorchDispatchModeKey;
  if (torch::jit::tracer::isTracing()) return true;
  return Modes::any_modes_set() &&
         (Modes::get_mode(Key::PROXY) || Modes::get_mode(Key::FUNCTIONAL) || Modes::get_mode(Key::FAKE));
}

c10::Storage new_storage(std::size_t bytes, c10::Device device) {
  c10::OptionalDeviceGuard there;
  if (!device.is_cpu()) there.reset_device(device);
  c10::Allocator* const allocator = c10::GetAllocator(device.type());
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, true);
}

void copy(const c10::Storage& to, const c10::Storage& from) {
  if (from.device_type() == c10::DeviceType::CPU) {
    std::memcpy(to.mutable_data(), from.data(), from.nbytes());
    return;
  }
  const Unseen unseen;
  bytes_in(to).copy_(bytes_in(from));
}

c10::Storage new_pinned_storage(std::size_t bytes, c10::Device device) {
  c10::Allocator* const allocator =
      at::globalContext().getAcceleratorHooksInterface(device.type()).getPinnedMemoryAllocator();
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, false);
}

void copy_beside(const c10::Storage& to, const c10::Storage& from) {
  const Unseen unseen;
  bytes_in(to).copy_(bytes_in(from), true);
}

// By an event of our own: a wait for the device's stream would throw what the program's kernels threw, perhaps only
// once, and the program, which waits later, would never know.
std::vector<std::byte> on_host(const c10::Storage& storage) {
  std::vector<std::byte> bytes(storage.nbytes());
  constexpr std::int64_t most = 4 << 20;  // at once: LibTorch keeps pinned memory
  const auto size = static_cast<std::int64_t>(bytes.size());
  const Unseen unseen;
  const at::Tensor there = bytes_in(storage), pinned = pinned_bytes(std::min(size, most));
  if (!pinned.defined()) {
    at::from_blob(bytes.data(), {size}, at::kByte).copy_(there);
    return bytes;
  }
  for (std::int64_t at = 0; at < size; at += most) {
    const std::int64_t part = std::min(size - at, most);
    pinned.narrow(0, 0, part).copy_(there.narrow(0, at, part), /*non_blocking=*/true);
    c10::Event copied(storage.device_type());
    copied.record(current_stream_of_accelerator(storage.device()));
    copied.synchronize();
    std::memcpy(bytes.data() + at, pinned.const_data_ptr(), static_cast<std::size_t>(part));
  }
  return bytes;
}

void count_backend(c10::Device device) {
  counted_backends.fetch_or(bit_of_device(device));
}

bool is_counted(c10::Device device) {
  return (counted_backends.load(std::memory_order_relaxed) & bit_of_device(device)) != 0;
}

c10::Stream current_stream_of_accelerator(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

bool is_capturing(c10::Device device) {
  return is_capturing(current_stream_of_accelerator(device));
}

void use_here(const c10::Storage& storage, const std::optional<c10::Stream>& made_on) {
  if (!made_on || !storage) return;
  const c10::impl::VirtualGuardImpl device(made_on->device_type());
  const c10::Stream here = device.getStream(made_on->device());
  if (here == *made_on || is_capturing(here)) return;
  c10::Event made(made_on->device_type());
  made.record(*made_on);
  made.block(here);
  device.recordDataPtrOnStream(storage.data_ptr(), here);
}

std::vector<c10::DispatchKey> kernels_of(const c10::OperatorHandle& handle) {
  using Key = c10::DispatchKey;
  std::vector<Key> keys;
  if (handle.hasComputedKernelForDispatchKey(Key::CPU)) keys.push_back(Key::CPU);
  for (const Key key : {Key::CUDA, Key::XPU, Key::HPU, Key::MTIA, Key::PrivateUse1}) {
    if (handle.hasKernelForDispatchKey(key)) keys.push_back(key);
  }
  return keys;
}

// Python's registrations give the file and the line of the function.
bool is_python_kernel(const c10::OperatorHandle& handle) {
  const auto keys = kernels_of(handle);
  return std::any_of(keys.begin(), keys.end(), [&](c10::DispatchKey key) {
    return registration_of_kernel(handle, key).find(".py:") != std::string::npos;
  });
}

bool has_state(c10::GeneratorImpl& generator) try {
  if (dynamic_cast<at::CPUGeneratorImpl*>(&generator)) return true;
  if (generator.device().is_cpu()) return false;
  (void)generator.get_offset();
  return true;
} catch (const c10::Error&) {  // it has none
  return false;
}

RandomState state_of(c10::GeneratorImpl& given) {
  if (auto* const generator = dynamic_cast<at::CPUGeneratorImpl*>(&given)) {
    return CpuRandomState{generator->engine(), generator->next_float_normal_sample(),
                          generator->next_double_normal_sample()};
  }
  return SeedAndOffset{given.current_seed(), given.get_offset()};
}

void restore(c10::GeneratorImpl& given, const RandomState& state) {
  if (const auto* const of_device = std::get_if<SeedAndOffset>(&state)) {
    given.set_current_seed(of_device->seed);
    given.set_offset(of_device->offset);
    return;
  }
  auto& generator = dynamic_cast<at::CPUGeneratorImpl&>(given);
  const auto& of_cpu = std::get<CpuRandomState>(state);
  generator.set_engine(of_cpu.engine);
  generator.set_next_float_normal_sample(of_cpu.next_float);
  generator.set_next_double_normal_sample(of_cpu.next_double);
}

at::Generator default_generator(c10::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

at::Generator new_generator(c10::Device device) {
  if (device.is_cpu()) return at::detail::createCPUGenerator();
  return at::globalContext().getAcceleratorHooksInterface(device.type()).getNewGenerator(device.index());
}

std::uint64_t fingerprint(const RandomState& given) {
  if (const auto* const of_device = std::get_if<SeedAndOffset>(&given)) {
    return XXH3_64bits_withSeed(&of_device->offset, sizeof of_device->offset, of_device->seed);
  }
  const auto& state = std::get<CpuRandomState>(given);
  const at::mt19937_data_pod engine = state.engine.data();
  // One by one: what lies between members is of none.
  const std::array<double, 6> rest{static_cast<double>(engine.left_), static_cast<double>(engine.next_),
                                   state.next_float ? 1.0 : 0.0,      state.next_float.value_or(0.0f),
                                   state.next_double ? 1.0 : 0.0,     state.next_double.value_or(0.0)};
  return XXH3_64bits_withSeed(engine.state_.data(), sizeof engine.state_, XXH3_64bits(rest.data(), sizeof rest));
}

void throw_modified(const Version& now, std::uint32_t expected, c10::Device device, at::ScalarType dtype,
                    c10::IntArrayRef sizes, const std::string& made_by) {
  // A tensor that LibTorch calls by the name of its type, without contents.
  const at::Tensor like = at::detail::make_tensor<c10::TensorImpl>(
      c10::DispatchKeySet(c10::computeDispatchKey(dtype, c10::kStrided, device)), c10::scalarTypeToTypeMeta(dtype),
      device);
  TORCH_CHECK(
      false, "one of the variables needed for gradient computation has been modified by an inplace operation: [",
      like.toString(), " ", sizes, "]", made_by, " is at version ", now.current_version(), "; expected version ",
      expected, " instead. ",
      torch::autograd::AnomalyMode::is_enabled()
          ? std::string("Hint: the backtrace further above shows the operation that failed to compute its gradient. "
                        "The variable in question was changed in there or anywhere later. Good luck!")
          : std::string("Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
                        "with ") +
                anomaly_detection + ".");
}

}  // namespace reprise::internal::libtorch
