// The allocator of a kind of accelerators in front of the one that it had: its bytes are counted and limited as the
// CPU's are, for each device by a meter of its own.
//
// An allocation counts in units of the allocator below, 512 bytes at most. Bytes are reserved, and
// values evicted, before the allocator below is asked, and so before it takes any lock. It may refuse although the
// bytes fit, because they are in pieces, or in use by others: then more is evicted, as long as there is anything.
//
// CUDA's has more to it: see cuda_allocator.h.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "torch/libtorch/libtorch_versions.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/device_headers.h"

namespace reprise::internal {

class CountedAllocator : public libtorch::DelegatingAllocator {
 public:
  // Returns the present one. Null if another one cannot delegate to it.
  static Below* find_below(c10::DeviceType);
  // Installs one that delegates to the present one, for the rest of the process. Throws BadOption if that cannot be.
  static CountedAllocator& install(c10::DeviceType);
  // Returns how many devices of this kind there are. Throws BadOption if there is none.
  [[nodiscard]] static std::size_t count_devices(c10::DeviceType);
  // Throws BadOption: devices of this kind cannot be counted.
  [[noreturn]] static void refuse(c10::DeviceType, const std::string& why);

  [[nodiscard]] DeviceMeter& meter(c10::DeviceIndex device) { return meters_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] std::size_t devices() const { return meters_.size(); }
  // Returns whether LibTorch asks this one now.
  [[nodiscard]] virtual bool is_installed() const { return c10::GetAllocator(type_) == this; }
  // Called when the first step of a device begins, and when the last one has ended.
  virtual void begin_steps(const Arbiter&) {}
  virtual void end_steps(const Arbiter&) {}
  // Look for bytes that were handed out before this allocator was there, or by passing it: the allocator below is
  // asked, which has a lock of its own. Count what was seen, until the next time.
  void look_for_uncounted(c10::DeviceIndex);
  void count_uncounted(const Arbiter&, c10::DeviceIndex);

  c10::DataPtr allocate(std::size_t) override;
  c10::DeleterFnPtr raw_deleter() const override;

 protected:
  // What the allocator below gave, and what it counts for that, which may be more than it was asked for.
  struct Given {
    c10::DataPtr memory;
    Bytes bytes = 0;  // zero: what it was asked for
  };
  using AskBelow = c10::function_ref<Given()>;

  CountedAllocator(Below&, c10::DeviceType, std::size_t devices);
  // Returns memory of the current device for which the allocator below is asked in this way.
  [[nodiscard]] c10::DataPtr allocate(std::size_t, AskBelow);
  void use_on(const c10::DataPtr&, c10::Stream) override;

  // Finds out in which units the allocator below counts. Before it is asked for anything.
  void find_unit();
  // Throws BadOption unless the tensors of this kind of accelerators are counted now.
  void expect_to_be_asked() const;

 private:
  [[nodiscard]] Bytes reserve(c10::DeviceIndex, Bytes);
  [[nodiscard]] Given from_below(c10::DeviceIndex, AskBelow, Bytes);
  void update_waiting(c10::DeviceIndex);

  struct Uncounted {
    Bytes counted = 0;        // until now
    Bytes more = 0;           // were seen since
    std::uint64_t times = 0;  // that they were counted
  };

  const c10::DeviceType type_;
  Bytes unit_ = 512;
  std::deque<std::string> names_;     // by device
  std::deque<DeviceMeter> meters_;    // by device
  std::vector<Uncounted> uncounted_;  // by device; under the arbiter's lock
};

}  // namespace reprise::internal
