// CountedDevices: the devices whose bytes are counted and limited. The CPU is one from the start, an accelerator from
// the moment that a session asks for it.
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
  // Makes one whose bytes the meter counts. `allocator`: of an accelerator; null: it is the CPU.
  CountedDevice(c10::Device, Meter&, CountedAllocator* allocator);
  CountedDevice(const CountedDevice&) = delete;
  CountedDevice& operator=(const CountedDevice&) = delete;

  [[nodiscard]] c10::Device device() const { return device_; }
  [[nodiscard]] bool is_cpu() const { return device_.is_cpu(); }
  [[nodiscard]] std::string name() const { return meter_.device(); }
  [[nodiscard]] Meter& meter() const { return meter_; }
  [[nodiscard]] bool has(const c10::StorageImpl&) const;

  // Returns whether LibTorch asks our allocator there; another library may have installed its own.
  [[nodiscard]] bool is_installed() const;
  // Limits its bytes: see Meter::limit, and on the CPU meter::limit.
  void limit(Bytes limit, Bytes reserve) const;
  // Asks the allocator of an accelerator what was allocated before it was counted. A step is about to begin.
  void look() const;
  // Begins peaks anew, and counts what was seen as well. The step begins, and no other one is open here.
  void begin(const Arbiter&) const;
  // Called when the last open step here has ended.
  void end(const Arbiter&) const;
  // Returns whether what this thread gives to the device becomes a part of a graph. Then nothing is recorded, and
  // nothing can be replayed.
  [[nodiscard]] bool is_capturing() const { return !is_cpu() && captures_here(); }

 private:
  [[nodiscard]] bool captures_here() const;

  const c10::Device device_;
  Meter& meter_;
  CountedAllocator* const allocator_;
};

// Returns the accelerators that there may be tensors on: their allocator has handed out memory, or does not say.
[[nodiscard]] std::vector<c10::Device> accelerators_in_use();

// Throws BadOption if LibTorch knows no device of this name at present.
void check_device_name(const std::string&);

// Those of the process. Never destroyed, because their allocators are not.
class CountedDevices {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static CountedDevices& of_process();

  [[nodiscard]] const CountedDevice& cpu() const { return cpu_; }
  // Returns the device by the name that LibTorch gives it, as "cuda:0"; without a number, the current one. Empty: the
  // CPU. From then on its bytes are counted. Throws BadOption if they cannot be.
  [[nodiscard]] const CountedDevice& at(const std::string& device);

 private:
  const CountedDevice cpu_{c10::Device(c10::DeviceType::CPU), meter::cpu(), nullptr};
  std::mutex mutex_;  // nothing of ours is locked under it
  std::vector<std::unique_ptr<const CountedDevice>> others_;
};

}  // namespace reprise::internal
