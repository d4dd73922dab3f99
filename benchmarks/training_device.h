// Where training is measured: on the CPU, or on a device.
#pragma once

#include <c10/core/Event.h>

#include <optional>
#include <string>

#include "reprise/torch/session.h"
#include "torch/memory/counted_device.h"

namespace reprise::benchmarks {

// On this device from now on: "cpu", as at first, or the one that was offered. Before anything else of LibTorch is
// used. Throws BadOption if there is no such device.
void train_on(const std::string& device);
// Before main, by a program that has a device: makes it the default one, and says which it is.
using TakeDevice = c10::Device (*)();
void offer_device(const char* name, TakeDevice);

[[nodiscard]] const internal::CountedDevice& device_of_training();

// The time that training takes: CPU of the process, or on a device what its events say.
class TrainingClock {
 public:
  TrainingClock();
  // Seconds since it was made. Waits for the device.
  [[nodiscard]] double seconds();

 private:
  std::optional<c10::Event> begun_;  // on a device
  double start_ = 0;
};

}  // namespace reprise::benchmarks
