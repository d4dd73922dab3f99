// CountedDevices: the devices whose bytes are counted and limited. The CPU is one from the start, an accelerator from
// the moment that somebody asks for it.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "torch/memory/counted_allocator.h"
#include "torch/memory/meter.h"

namespace reprise::internal {

class CountedDevice {
 public:
  // `allocator`: of an accelerator; nullptr: it is the CPU.
  CountedDevice(c10::Device, Meter&, CountedAllocator* allocator);
  CountedDevice(const CountedDevice&) = delete;
  CountedDevice& operator=(const CountedDevice&) = delete;

  [[nodiscard]] c10::Device device() const { return device_; }
  [[nodiscard]] bool is_cpu() const { return device_.is_cpu(); }
  [[nodiscard]] std::string name() const { return meter_.device(); }
  [[nodiscard]] Meter& meter() const { return meter_; }
  [[nodiscard]] bool has(const c10::StorageImpl&) const;

  // Whether LibTorch asks our allocator there; another library may have put its own in front.
  [[nodiscard]] bool is_installed() const;
  // See Meter::limit, and on the CPU meter::limit.
  void limit(Bytes limit, Bytes reserve) const;
  // A step is about to begin: asks the allocator of an accelerator what was allocated before anybody counted. Not under
  // the arbiter's lock.
  void look() const;
  // It begins, and no other one is open here: peaks begin anew, and what was seen counts, too. Under the arbiter's
  // lock.
  void begin() const;
  // The last open step here has ended. Under the arbiter's lock.
  void end() const;
  // Whether what this thread gives to the device becomes a part of a graph. Then nothing is recorded, and nothing can
  // be replayed.
  [[nodiscard]] bool is_capturing() const { return !is_cpu() && captures_here(); }

 private:
  [[nodiscard]] bool captures_here() const;

  const c10::Device device_;
  Meter& meter_;
  CountedAllocator* const allocator_;
};

// The accelerators that there may be tensors on: their allocator has handed out memory, or does not say.
[[nodiscard]] std::vector<c10::Device> accelerators_in_use();

// Throws BadOption if LibTorch knows no device of this name at present.
void check_device_name(const std::string&);

// Those of the process. Never destroyed, because their allocators are not.
class CountedDevices {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static CountedDevices& of_process();

  [[nodiscard]] const CountedDevice& cpu() const { return cpu_; }
  // By the name that LibTorch gives the device, as "cuda:0"; without a number, the current one. Empty: the CPU. From
  // then on its bytes are counted. Throws BadOption if they cannot be. Not under the arbiter's lock.
  [[nodiscard]] const CountedDevice& at(const std::string& device);

 private:
  const CountedDevice cpu_{c10::Device(c10::DeviceType::CPU), meter::cpu(), nullptr};
  std::mutex mutex_;  // nothing of ours is locked under it
  std::vector<std::unique_ptr<const CountedDevice>> others_;
};

}  // namespace reprise::internal
