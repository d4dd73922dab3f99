// The allocator in front of an accelerator's: what it counts.
#include "torch/memory/counted_allocator.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <chrono>

#include "accelerator/accelerator.h"
#include "devices/device_training.h"
#include "torch/memory/counted_device.h"

namespace reprise::testing {
using namespace internal;
namespace {

class CountedAllocatorTest : public ::testing::Test {
 protected:
  ~CountedAllocatorTest() override { counted.limit(meter::unlimited, 0); }

  static at::Tensor bytes(std::int64_t count) {
    return at::empty({count}, at::TensorOptions(device()).dtype(at::kByte));
  }

  // A kernel of this stream uses it, and the program lets go of it.
  static void use_and_free(at::Tensor tensor, c10::Stream other) {
    {
      const c10::StreamGuard on(other);
      tensor.add_(1);
    }
    c10::impl::VirtualGuardImpl(accelerator::type).recordDataPtrOnStream(tensor.storage().data_ptr(), other);
  }

  const CountedDevice& counted = CountedDevices::of_process().at(device().str());
  Meter& meter = counted.meter();
  const Bytes before = meter.live();
};

TEST_F(CountedAllocatorTest, CountsUnitsOf512BytesOfOneDevice) {
  const CountedDevice& other = CountedDevices::of_process().at(c10::Device(accelerator::type, 1).str());
  const Bytes there = other.meter().live();
  {
    const at::Tensor one = bytes(1), two = bytes(513);
    EXPECT_EQ(meter.live() - before, 512 + 1024);
    EXPECT_EQ(other.meter().live(), there);
    const at::Tensor on_other = at::empty({5}, at::TensorOptions(other.device()).dtype(at::kByte));
    EXPECT_EQ(other.meter().live() - there, 512);
  }
  EXPECT_EQ(meter.live(), before);
  EXPECT_EQ(other.meter().live(), there);
}

TEST_F(CountedAllocatorTest, RefusesBeforeTheFirstByteOver) {
  counted.limit(before + 1024, 0);
  meter.mark_peak();
  const at::Tensor one = bytes(1024);
  EXPECT_THROW((void)bytes(1), BudgetError);
  EXPECT_EQ(meter.live() - before, 1024);
  EXPECT_EQ(meter.peak(), meter.live());
}

TEST_F(CountedAllocatorTest, CountsWhatAnotherStreamMayUseUntilItIsThrough) {
  const c10::impl::VirtualGuardImpl guard(accelerator::type);
  const c10::Stream other = guard.getNewStream(device());
  {
    const accelerator::Held held(other);
    use_and_free(bytes(4096), other);
    const at::Tensor asked = bytes(1);
    EXPECT_GE(meter.live() - before, 4096 + 512) << "it is waiting";
    EXPECT_GT(accelerator::memory().waiting, 0);
  }
  accelerator::synchronize();
  (void)bytes(1);  // the allocator below looks
  (void)bytes(1);  // and this one asks it
  EXPECT_EQ(meter.live(), before);
}

TEST_F(CountedAllocatorTest, WaitsForOtherStreamsBeforeItRefuses) {
  const c10::impl::VirtualGuardImpl guard(accelerator::type);
  const c10::Stream other = guard.getNewStream(device());
  counted.limit(before + 4096, 0);
  accelerator::slow_down(std::chrono::milliseconds(20));
  use_and_free(bytes(4096), other);
  accelerator::slow_down({});
  EXPECT_EQ(bytes(4096).numel(), 4096);
}

TEST_F(CountedAllocatorTest, FindsTheHeaderOfATensorAndOfItsViews) {
  const at::Tensor tensor = bytes(2000);
  const meter::Header* const header = meter::header_of(*tensor.storage().unsafeGetStorageImpl());
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(header->bytes, 2048);
  EXPECT_EQ(header->meter, &counted.meter());
  EXPECT_TRUE(meter::is_on_device(*header));
  EXPECT_EQ(meter::header_of(*tensor.slice(0, 10).storage().unsafeGetStorageImpl()), header);
}

}  // namespace
}  // namespace reprise::testing
