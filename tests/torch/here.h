// Here: the device that tests run at.
//
// That is the CPU. In reprise_tests_on_device, which is linked from the same objects, it is the simulated accelerator:
// tensors for which nobody names a device are made there. So a test that asks here for the meter and for the options of
// its sessions is one of both. What is about the CPU says so, and is skipped elsewhere.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "reprise/torch/session.h"
#include "torch/memory/counted_device.h"

namespace reprise::testing {

[[nodiscard]] const internal::CountedDevice& here();
[[nodiscard]] inline internal::Meter& meter_here() {
  return here().meter();
}

// Those of a session that limits the bytes of this device.
[[nodiscard]] SessionOptions options_here();

// For what LibTorch makes on the CPU whatever the default: torch::tensor, from_blob. The same tensor if it is here.
[[nodiscard]] at::Tensor to_here(const at::Tensor&);
[[nodiscard]] at::Generator default_generator_here();
[[nodiscard]] at::Generator generator_here(std::uint64_t seed);

// What an allocation of n bytes counts here.
[[nodiscard]] Bytes counted_here(std::size_t n);

// Writes one number without anybody's notice, as through a pointer: on a device, as a kernel of the user's would.
void write_behind(const at::Tensor&, std::int64_t element, float number);

// Waits for what was given to the device, and discards what its kernels threw.
void settle_here();

// On a device LibTorch runs backward on a thread of its engine's, which lets go of the last that it used whenever it
// comes to that. Bytes could not be compared, so tests run it on the thread that calls it, as the CPU and sessions do;
// while this lives as LibTorch does.
class OnThreadsOfTheEngine {
 public:
  OnThreadsOfTheEngine();
  ~OnThreadsOfTheEngine();  // waits until the engine has let go of everything
  OnThreadsOfTheEngine(const OnThreadsOfTheEngine&) = delete;
  OnThreadsOfTheEngine& operator=(const OnThreadsOfTheEngine&) = delete;
};

// Before main: makes a device the default one when the tests begin, and says which.
using TakePlace = c10::Device (*)();
void here_is(TakePlace);

}  // namespace reprise::testing

// In a test: not here, unless here is the CPU.
#define REPRISE_ONLY_ON_CPU(why) \
  if (!::reprise::testing::here().is_cpu()) GTEST_SKIP() << (why)
