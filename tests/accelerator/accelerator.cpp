#include "accelerator/accelerator.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <mutex>

#include "accelerator/device_generator.h"
#include "accelerator/device_memory.h"
#include "accelerator/device_operators.h"
#include "accelerator/device_streams.h"
#include "accelerator/pinned_memory.h"
#include "accelerator/registration.h"

namespace reprise::testing::accelerator {
namespace {

// What LibTorch asks a device that is none of its own.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }

  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_count()); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchange_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return exchange_device(device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchange_device(device); }
  c10::Device getDeviceFromPtr(void* data) const override { return {type, device_at(data)}; }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return new_generator(device); }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};

}  // namespace

void use(int devices, Like like) {
  static std::once_flag once;
  std::call_once(once, [&] {
    TORCH_CHECK(devices >= 1 && devices <= most_devices, "[accelerator] from 1 to ", most_devices, " devices");
    c10::register_privateuse1_backend("sim");
    start_streams(devices);
    register_allocator(like);
    register_pinned_memory();
    register_guard();
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    register_fallback(like);
    register_operators(like);
    register_recurrent_cells();
  });
}

}  // namespace reprise::testing::accelerator
