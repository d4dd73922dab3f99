// The allocator of a kind of accelerators in front of the one that it had: its bytes are counted and limited as the
// CPU's are, for each device by a meter of its own.
//
// An allocation counts in units of 512 bytes, as the allocators of accelerators give them. Bytes are reserved, and
// values forgotten, before the allocator below is asked, and so before it takes any lock. It may refuse although the
// bytes fit, because they are in pieces, or in use by others: then more is forgotten, as long as there is anything.
#pragma once

#include <c10/core/DeviceType.h>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "torch/far_memory.h"
#include "torch/libtorch_versions.h"

namespace reprise::internal {

class CountedAllocator final : public libtorch::AllocatorInFront {
 public:
  // Stands in front of the present one, for the rest of the process. Throws BadOption if that cannot be.
  static CountedAllocator& stand_in_front(c10::DeviceType);

  [[nodiscard]] FarMeter& meter(c10::DeviceIndex device) { return meters_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] std::size_t devices() const { return meters_.size(); }
  // Whether LibTorch asks this one now.
  [[nodiscard]] bool in_charge() const { return c10::GetAllocator(type_) == this; }
  // Bytes that were handed out before this allocator was there, or by passing it, count from now on, until the next
  // call.
  void see_uncounted(c10::DeviceIndex);

  c10::DataPtr allocate(std::size_t) override;
  c10::DeleterFnPtr raw_deleter() const override;

 private:
  CountedAllocator(Below&, c10::DeviceType, std::size_t devices);
  void use_on(const c10::DataPtr&, c10::Stream) override;

  [[nodiscard]] Bytes reserve(c10::DeviceIndex, Bytes);
  [[nodiscard]] c10::DataPtr from_below(c10::DeviceIndex, std::size_t, Bytes);
  void settle(c10::DeviceIndex);

  const c10::DeviceType type_;
  std::deque<std::string> names_;  // by device
  std::deque<FarMeter> meters_;    // by device
  std::vector<Bytes> uncounted_;   // by device; under the arbiter's lock
};

}  // namespace reprise::internal
