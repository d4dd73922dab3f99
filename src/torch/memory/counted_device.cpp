#include "torch/memory/counted_device.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "reprise/trace/error.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/cuda_allocator.h"

namespace reprise::internal {
namespace {

[[noreturn]] void fail(const std::string& device, const std::string& why) {
  throw BadOption("[session] option device is '" + device + "': " + why);
}

c10::Device device_named(const std::string& name) try { return c10::Device(name); } catch (const c10::Error&) {
  fail(name, "LibTorch knows no such device");
}

}  // namespace

void check_device_name(const std::string& name) {
  (void)device_named(name);
}

// ---- one -----------------------------------------------------------------------------------------------------------

CountedDevice::CountedDevice(c10::Device device, Meter& meter, CountedAllocator* allocator)
    : device_(device), meter_(meter), allocator_(allocator) {}

bool CountedDevice::has(const c10::StorageImpl& storage) const {
  return is_cpu() ? storage.device_type() == c10::DeviceType::CPU : storage.device() == device_;
}

bool CountedDevice::is_installed() const {
  return allocator_ ? allocator_->is_installed() : meter::is_installed();
}

void CountedDevice::limit(Bytes limit, Bytes reserve) const {
  if (!allocator_) return meter::limit(limit, reserve);
  meter_.limit(limit, reserve);
}

void CountedDevice::look() const {
  if (allocator_) allocator_->look_for_uncounted(device_.index());
}

void CountedDevice::begin(const Arbiter& lock) const {
  if (allocator_) {
    allocator_->count_uncounted(lock, device_.index());
    allocator_->begin_steps(lock);
  }
  meter_.mark_peak();
}

void CountedDevice::end(const Arbiter& lock) const {
  if (allocator_) allocator_->end_steps(lock);
}

bool CountedDevice::captures_here() const {
  return libtorch::is_capturing(device_);
}

std::vector<c10::Device> accelerators_in_use() {
  std::vector<c10::Device> all;
  const auto type = at::accelerator::getAccelerator();
  if (!type || !c10::impl::hasDeviceGuardImpl(*type)) return all;
  const c10::DeviceIndex devices = c10::impl::VirtualGuardImpl(*type).deviceCount();
  auto* const allocator = devices > 0 ? CountedAllocator::find_below(*type) : nullptr;
  for (c10::DeviceIndex i = 0; i < devices; ++i) {
    if (!allocator || libtorch::DelegatingAllocator::is_in_use(*allocator, i)) all.emplace_back(*type, i);
  }
  return all;
}

// ---- all -----------------------------------------------------------------------------------------------------------

CountedDevices& CountedDevices::of_process() {
  static auto& one = *new CountedDevices;
  return one;
}

const CountedDevice& CountedDevices::at(const std::string& name) {
  if (name.empty()) return cpu_;
  c10::Device device = device_named(name);
  if (device.is_cpu()) return cpu_;
  const std::scoped_lock lock(mutex_);
  if (!device.has_index() && c10::impl::hasDeviceGuardImpl(device.type())) {
    device.set_index(c10::impl::VirtualGuardImpl(device.type()).getDevice().index());
  }
  for (const auto& counted : others_) {
    if (counted->device() == device) return *counted;
  }
  const bool first = std::none_of(others_.begin(), others_.end(),
                                  [&](const auto& counted) { return counted->device().type() == device.type(); });
  if (!first) fail(name, "there is no such device");
  auto& allocator = device.is_cuda() ? install_on_cuda() : CountedAllocator::install(device.type());
  libtorch::count_backend(device);
  for (std::size_t i = 0; i < allocator.devices(); ++i) {
    const auto index = static_cast<c10::DeviceIndex>(i);
    others_.push_back(
        std::make_unique<const CountedDevice>(c10::Device(device.type(), index), allocator.meter(index), &allocator));
  }
  for (const auto& counted : others_) {
    if (counted->device() == device) return *counted;
  }
  fail(name, "there is no such device");
}

}  // namespace reprise::internal
