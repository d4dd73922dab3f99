// Places: the devices whose bytes are counted and limited. The CPU is one.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "torch/meter.h"

namespace reprise::internal {

class Place {
 public:
  Place(c10::Device, Meter&);
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] c10::Device device() const { return device_; }
  [[nodiscard]] bool is_cpu() const { return device_.is_cpu(); }
  [[nodiscard]] const std::string& name() const { return name_; }  // as LibTorch writes it
  [[nodiscard]] Meter& meter() const { return meter_; }

  // Whether LibTorch asks our allocator there; another library may have put its own in front.
  [[nodiscard]] bool in_charge() const;
  // See Meter::limit, and on the CPU meter::limit.
  void limit(Bytes limit, Bytes reserve) const;

 private:
  const c10::Device device_;
  const std::string name_;
  Meter& meter_;
};

// Those of the process. Never destroyed, because their allocators are not.
class Places {
 public:
  [[nodiscard]] const Place& cpu() const { return cpu_; }

 private:
  const Place cpu_{c10::Device(c10::DeviceType::CPU), meter::cpu()};
};

}  // namespace reprise::internal
