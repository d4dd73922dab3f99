// What tests of the simulated accelerator have in common.
#pragma once

#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <thread>

#include "accelerator/accelerator.h"

namespace reprise::testing::accelerator {

class Accelerator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use(2); }

  // As it was, whatever the test did.
  void TearDown() override {
    durations({});
    slow_down({});
    fail_allocation_after(-1);
    fail_kernel_after(-1);
    segments_of(0);
    capacity(unlimited);
    EXPECT_NO_THROW(synchronize());
    // A thread of LibTorch's engine lets go of the last that backward used when it comes to that.
    for (int i = 0; i < 500 && memory().live != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    empty_cache();
    EXPECT_EQ(memory().live, 0) << "a test left something";
    mark_peak();
  }

  static at::Tensor full(std::int64_t numbers, float value, c10::DeviceIndex device = 0) {
    return at::full({numbers}, value, at::TensorOptions(c10::Device(type, device)));
  }
  // So many different numbers.
  static at::Tensor numbers(std::int64_t size) { return at::arange(size, at::TensorOptions(device_)); }

  static bool all_are(const at::Tensor& tensor, float value) {
    return at::equal(tensor.cpu(), at::full_like(tensor.cpu(), value));
  }

  static inline const c10::Device device_{type, 0};
  const c10::impl::VirtualGuardImpl guard_{type};
  const c10::Stream main_ = guard_.getDefaultStream(device_);
};

}  // namespace reprise::testing::accelerator
