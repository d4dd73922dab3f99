// Whether a session works on a device: what `reprise doctor` says about each device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::tools {

// All that LibTorch knows of, beside the CPU.
[[nodiscard]] std::vector<c10::Device> accelerators();

struct DeviceCheck {
  std::string why_not_counted;  // empty: its bytes can be counted and limited
  std::string failure;          // of the training; empty: there was none
  bool exact = false;           // the gradients are those of plain training, bit for bit
  std::int64_t replays = 0;     // operators that were run again
  std::string why_no_host;      // empty: values can go to pinned memory of the host
};

// Trains a tiny model there, plainly and with everything evicted and recomputed.
[[nodiscard]] DeviceCheck check_device(c10::Device);

}  // namespace reprise::tools
