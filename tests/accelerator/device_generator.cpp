#include "accelerator/device_generator.h"

#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <mutex>

#include "accelerator/device_streams.h"

namespace reprise::testing::accelerator {
namespace {

class DeviceGenerator final : public c10::GeneratorImpl {
 public:
  explicit DeviceGenerator(c10::DeviceIndex device)
      : GeneratorImpl(c10::Device(type, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(std::uint64_t seed) override { state_ = {seed, 0}; }
  std::uint64_t current_seed() const override { return state_[0]; }
  std::uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return current_seed();
  }
  void set_offset(std::uint64_t offset) override {
    TORCH_CHECK(offset % step == 0, "[accelerator] an offset has to be a multiple of ", step);
    state_[1] = offset;
  }
  std::uint64_t get_offset() const override { return state_[1]; }

  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.numel() == sizeof state_ && state.device().is_cpu(), "[accelerator] no state of a generator");
    std::memcpy(state_.data(), state.data(), sizeof state_);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const at::Tensor state = at::empty({sizeof state_}, at::TensorOptions(at::kCPU).dtype(at::kByte));
    std::memcpy(state.mutable_data_ptr(), state_.data(), sizeof state_);
    return state.getIntrusivePtr();
  }

  // A different one for every seed and offset, by the finalizer of splitmix64.
  std::uint64_t next() {
    const std::scoped_lock lock(mutex_);
    state_[1] += step;
    std::uint64_t x = state_[0] * 0x9E3779B97F4A7C15U + state_[1];
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }

 private:
  DeviceGenerator* clone_impl() const override {
    auto* const copy = new DeviceGenerator(device().index());
    copy->state_ = state_;
    return copy;
  }

  static constexpr std::uint64_t step = 4;
  std::array<std::uint64_t, 2> state_{c10::default_rng_seed_val, 0};  // seed and offset
};

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto& all = *[] {
    auto* const made = new std::vector<at::Generator>;
    for (int i = 0; i < most_devices; ++i) made->push_back(new_generator(static_cast<c10::DeviceIndex>(i)));
    return made;
  }();
  return all.at(static_cast<std::size_t>(device < 0 ? current_device() : device));
}

at::Generator new_generator(c10::DeviceIndex device) {
  return at::make_generator<DeviceGenerator>(device < 0 ? current_device() : device);
}

std::uint64_t next_seed(const std::optional<at::Generator>& given) {
  const at::Generator generator = given && given->defined() ? *given : default_generator(-1);
  TORCH_CHECK(generator.device().type() == type, "[accelerator] a generator of another device: ", generator.device());
  return static_cast<DeviceGenerator*>(generator.unsafeGetGeneratorImpl())->next();
}

}  // namespace reprise::testing::accelerator
