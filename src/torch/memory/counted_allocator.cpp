#include "torch/memory/counted_allocator.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <string>
#include <utility>

#include "reprise/trace/error.h"
#include "torch/libtorch/error_translation.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/arbiter.h"

namespace reprise::internal {
namespace {

constexpr std::uint8_t priority = 100;  // the present one's is lower

}  // namespace

CountedAllocator::CountedAllocator(Below& below, c10::DeviceType type, std::size_t devices)
    : DelegatingAllocator(below), type_(type), uncounted_(devices) {
  for (std::size_t i = 0; i < devices; ++i) {
    names_.push_back(c10::Device(type, static_cast<c10::DeviceIndex>(i)).str());
    meters_.emplace_back(names_.back().c_str());
  }
}

libtorch::DelegatingAllocator::Below* CountedAllocator::find_below(c10::DeviceType type) try {
  return below_of(type);
} catch (const c10::Error&) {  // there is none
  return nullptr;
}

void CountedAllocator::refuse(c10::DeviceType type, const std::string& why) {
  throw BadOption("[session] option device: the bytes of '" + c10::DeviceTypeName(type, true) +
                  "' cannot be counted, because " + why);
}

std::size_t CountedAllocator::count_devices(c10::DeviceType type) {
  if (!c10::impl::hasDeviceGuardImpl(type)) refuse(type, "this LibTorch has no such device");
  const auto count = c10::impl::VirtualGuardImpl(type).deviceCount();
  if (count <= 0) refuse(type, "there is no such device");
  return static_cast<std::size_t>(count);
}

void CountedAllocator::expect_to_be_asked() const {
  if (!is_installed()) refuse(type_, "its allocator does not let another one stand in front of it");
  if (!device_headers::find(libtorch::new_bytes(1, type_).storage().data_ptr())) {
    refuse(type_, "its tensors are not allocated by the allocator that LibTorch has for it");
  }
}

CountedAllocator& CountedAllocator::install(c10::DeviceType type) {
  const std::size_t devices = count_devices(type);
  Below* const below = find_below(type);
  if (!below) refuse(type, "its allocator is none that another one could stand in front of");
  {
    const c10::DataPtr trial = below->allocate(1);
    if (trial.get() != trial.get_context()) refuse(type, "its allocator hides the addresses of its memory");
  }
  auto& made = *new CountedAllocator(*below, type, devices);  // never destroyed: another thread may have asked it
  made.find_unit();
  c10::SetAllocator(type, &made, priority);
  try {
    made.expect_to_be_asked();
  } catch (...) {
    c10::SetAllocator(type, below, priority);
    throw;
  }
  return made;
}

// The least that the allocator below counts for a byte. What another thread allocates meanwhile is taken for it, unless
// that makes it more than any allocator has.
void CountedAllocator::find_unit() {
  const c10::DeviceIndex device = c10::impl::VirtualGuardImpl(type_).getDevice().index();
  const Bytes before = handed_out(device);
  const c10::DataPtr trial = below().allocate(1);
  const Bytes one = handed_out(device) - before;
  if (one > 0 && one < unit_) unit_ = one;
}

c10::DeleterFnPtr CountedAllocator::raw_deleter() const {
  return device_headers::deleter();
}

// ---- allocating ----------------------------------------------------------------------------------------------------

c10::DataPtr CountedAllocator::allocate(std::size_t n) {
  return allocate(n, [&] { return Given{below().allocate(n)}; });
}

// What the allocator below counts beyond what was wanted (a rest) is known when it has given the memory. If there is no
// room for that, it gets its memory back, and is asked again once there is.
c10::DataPtr CountedAllocator::allocate(std::size_t n, AskBelow ask) {
  if (n == 0) return ask().memory;
  const c10::DeviceIndex device = c10::impl::VirtualGuardImpl(type_).getDevice().index();
  DeviceMeter& of_device = meter(device);
  of_device.begin_allocation();
  const Bytes bytes = (static_cast<Bytes>(n) + unit_ - 1) / unit_ * unit_;
  return through_error_door([&] {
    for (Bytes rest = 0;;) {
      const Bytes now = reserve(device, bytes + rest);
      Given given = from_below(device, ask, bytes + rest);
      const Bytes beyond = std::max(given.bytes, bytes) - (bytes + rest);
      if (beyond <= 0 || of_device.charge(beyond)) {
        if (beyond < 0) of_device.freed(-beyond);
        of_device.allocated(now + beyond);
        device_headers::adopt(given.memory, bytes, rest + beyond, of_device);
        return std::move(given.memory);
      }
      given.memory.clear();
      of_device.freed(bytes + rest);
      rest += beyond;
    }
  });
}

// What is waiting comes back only when the allocator below is asked for something, or empties its cache; the latter
// waits for the device, which is not allowed while a graph is captured.
Bytes CountedAllocator::reserve(c10::DeviceIndex device, Bytes bytes) {
  DeviceMeter& of_device = meter(device);
  update_waiting(device);
  Bytes now = 0;
  try {
    const NoErrorTranslation inside;
    now = of_device.reserve(bytes);
  } catch (const BudgetError&) {
    if (of_device.waiting() == 0 || libtorch::is_capturing(c10::Device(type_, device))) throw;
    emptyCache({0, 0});
    update_waiting(device);
    now = of_device.reserve(bytes);
  }
  if (now != 0) return now;
  C10_THROW_ERROR(OutOfMemoryError, c10::str("[meter] over the limit: ", bytes, " bytes wanted of ", of_device.device(),
                                             ", ", of_device.live(), " live, limit ", of_device.limit()));
}

CountedAllocator::Given CountedAllocator::from_below(c10::DeviceIndex device, AskBelow ask, Bytes bytes) {
  DeviceMeter& of_device = meter(device);
  for (;;) {
    try {
      return ask();
    } catch (const c10::OutOfMemoryError& error) {
      if (of_device.press_further(bytes)) continue;
      of_device.freed(bytes);
      if (of_device.limit() == meter::unlimited) throw;
      BudgetError::Facts facts;
      facts.device = of_device.device();
      facts.budget = of_device.limit();
      facts.live = of_device.live();
      facts.requested = bytes;
      facts.refused = error.what_without_backtrace();
      throw BudgetError(std::move(facts));
    } catch (...) {
      of_device.freed(bytes);
      throw;
    }
  }
}

void CountedAllocator::update_waiting(c10::DeviceIndex device) {
  DeviceMeter& of_device = meter(device);
  const Bytes were_waiting = of_device.waiting();
  if (were_waiting > 0) of_device.update_waiting(were_waiting, waiting(device));
}

// ---- besides -------------------------------------------------------------------------------------------------------

// What another thread has counted meanwhile is in what is live now: what was seen before says nothing then.
void CountedAllocator::look_for_uncounted(c10::DeviceIndex device) {
  Arbiter::expect_free("an allocator is asked what it has handed out");
  const DeviceMeter& of_device = meter(device);
  Uncounted& uncounted = uncounted_[static_cast<std::size_t>(device)];
  std::uint64_t times = 0;
  {
    const Arbiter lock;
    times = uncounted.times;
  }
  const Bytes more = handed_out(device) - (of_device.live() - of_device.waiting());
  const Arbiter lock;
  if (uncounted.times == times) uncounted.more = more;
}

void CountedAllocator::count_uncounted(const Arbiter&, c10::DeviceIndex device) {
  Uncounted& uncounted = uncounted_[static_cast<std::size_t>(device)];
  const Bytes now = std::max<Bytes>(0, uncounted.counted + std::exchange(uncounted.more, 0));
  meter(device).add_uncounted(now - std::exchange(uncounted.counted, now));
  ++uncounted.times;
}

void CountedAllocator::use_on(const c10::DataPtr& memory, c10::Stream stream) {
  if (meter::Header* const header = device_headers::find(memory)) device_headers::mark_shared(*header);
  const device_headers::AsGiven given(memory);
  record_below(given.memory(), stream);
}

}  // namespace reprise::internal
