// What tests ask of the kernels of the simulated accelerator, and how many there were.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "accelerator/accelerator.h"

namespace reprise::testing::accelerator {

// How a kernel that is launched now shall run.
struct KernelRule {
  std::optional<std::chrono::nanoseconds> duration;  // on the clock; without one, what it takes
  bool fails = false;
};
KernelRule next_kernel(const Kernel&);  // counts it
// How much later it really begins.
std::chrono::microseconds delay_of_kernels();

void count_wait(const std::string& who);
void count_allocation();

}  // namespace reprise::testing::accelerator
