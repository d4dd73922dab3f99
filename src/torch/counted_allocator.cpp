#include "torch/counted_allocator.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <string>

#include "reprise/trace/error.h"
#include "torch/error_door.h"

namespace reprise::internal {
namespace {

constexpr std::size_t unit = 512;
constexpr std::uint8_t priority = 100;  // the present one's is lower

Bytes counted(std::size_t n) {
  return static_cast<Bytes>((n + unit - 1) / unit * unit);
}

[[noreturn]] void fail(c10::DeviceType type, const std::string& why) {
  throw BadOption("[session] option device: the bytes of '" + c10::DeviceTypeName(type, true) +
                  "' cannot be counted, because " + why);
}

std::size_t count_devices(c10::DeviceType type) {
  if (!c10::impl::hasDeviceGuardImpl(type)) fail(type, "this LibTorch has no such device");
  const auto count = c10::impl::VirtualGuardImpl(type).deviceCount();
  if (count <= 0) fail(type, "there is no such device");
  return static_cast<std::size_t>(count);
}

libtorch::AllocatorInFront::Below* find_below(c10::DeviceType type) try {
  return libtorch::AllocatorInFront::below_of(type);
} catch (const c10::Error&) {  // there is none
  return nullptr;
}

}  // namespace

CountedAllocator::CountedAllocator(Below& below, c10::DeviceType type, std::size_t devices)
    : AllocatorInFront(below), type_(type), uncounted_(devices, 0) {
  for (std::size_t i = 0; i < devices; ++i) {
    names_.push_back(c10::Device(type, static_cast<c10::DeviceIndex>(i)).str());
    meters_.emplace_back(names_.back().c_str());
  }
}

CountedAllocator& CountedAllocator::stand_in_front(c10::DeviceType type) {
  const std::size_t devices = count_devices(type);
  Below* const below = find_below(type);
  if (!below) fail(type, "its allocator is none that another one could stand in front of");
  {
    const c10::DataPtr trial = below->allocate(1);
    if (trial.get() != trial.get_context()) fail(type, "its allocator hides the addresses of its memory");
  }
  auto& made = *new CountedAllocator(*below, type, devices);  // never destroyed: LibTorch has it from now on
  c10::SetAllocator(type, &made, priority);
  if (!made.in_charge()) fail(type, "its allocator does not let another one stand in front of it");
  if (!far::find(at::empty({1}, at::TensorOptions().device(type)).storage().data_ptr())) {
    fail(type, "its tensors are not allocated by the allocator that LibTorch has for it");
  }
  return made;
}

c10::DeleterFnPtr CountedAllocator::raw_deleter() const {
  return far::deleter();
}

// ---- allocating ----------------------------------------------------------------------------------------------------

c10::DataPtr CountedAllocator::allocate(std::size_t n) {
  if (n == 0) return below().allocate(0);
  const c10::DeviceIndex device = c10::impl::VirtualGuardImpl(type_).getDevice().index();
  FarMeter& of_device = meter(device);
  of_device.begin_allocation();
  const Bytes bytes = counted(n);
  return through_error_door([&] {
    const Bytes now = reserve(device, bytes);
    c10::DataPtr memory = from_below(device, n, bytes);
    of_device.allocated(now);
    far::adopt(memory, bytes, of_device);
    return memory;
  });
}

// What is waiting comes back only when the allocator below is asked for something, or empties its cache; the latter
// waits for the device.
Bytes CountedAllocator::reserve(c10::DeviceIndex device, Bytes bytes) {
  FarMeter& of_device = meter(device);
  settle(device);
  Bytes now = 0;
  try {
    const ErrorsStayInside inside;
    now = of_device.reserve(bytes);
  } catch (const BudgetError&) {
    if (of_device.waiting() == 0) throw;
    emptyCache({0, 0});
    settle(device);
    now = of_device.reserve(bytes);
  }
  if (now != 0) return now;
  C10_THROW_ERROR(OutOfMemoryError, c10::str("[meter] over the limit: ", bytes, " bytes wanted of ", of_device.place(),
                                             ", ", of_device.live(), " live, limit ", of_device.limit()));
}

c10::DataPtr CountedAllocator::from_below(c10::DeviceIndex device, std::size_t n, Bytes bytes) {
  FarMeter& of_device = meter(device);
  for (;;) {
    try {
      return below().allocate(n);
    } catch (const c10::OutOfMemoryError& error) {
      if (of_device.press_further(bytes)) continue;
      of_device.freed(bytes);
      if (of_device.limit() == meter::unlimited) throw;
      BudgetError::Facts facts;
      facts.place = of_device.place();
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

void CountedAllocator::settle(c10::DeviceIndex device) {
  FarMeter& of_device = meter(device);
  const Bytes were_waiting = of_device.waiting();
  if (were_waiting > 0) of_device.settle(were_waiting, waiting(device));
}

// ---- besides -------------------------------------------------------------------------------------------------------

void CountedAllocator::see_uncounted(c10::DeviceIndex device) {
  FarMeter& of_device = meter(device);
  Bytes& counted_so_far = uncounted_[static_cast<std::size_t>(device)];
  const Bytes ours = of_device.live() - of_device.waiting() - counted_so_far;
  const Bytes uncounted = std::max<Bytes>(0, handed_out(device) - ours);
  of_device.add_uncounted(uncounted - counted_so_far);
  counted_so_far = uncounted;
}

void CountedAllocator::use_on(const c10::DataPtr& memory, c10::Stream stream) {
  if (meter::Header* const header = far::find(memory)) far::mark_shared(*header);
  const far::AsGiven given(memory);
  tell_below(given.memory(), stream);
}

}  // namespace reprise::internal
