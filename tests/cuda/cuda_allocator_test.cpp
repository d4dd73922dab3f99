// The allocator in front of CUDA's: what it counts, and what it says.
#include "torch/libtorch/libtorch_versions.h"
#if REPRISE_CUDA_ALLOCATOR_IS_KNOWN  // else LibTorch's class may not have what is asked of it here

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include "cuda/cuda_training.h"
#include "cuda/stub_driver.h"
#include "torch/memory/counted_device.h"

namespace reprise::testing {
using namespace internal;
namespace {

namespace cca = c10::cuda::CUDACachingAllocator;

class CudaAllocator : public ::testing::Test {
 protected:
  ~CudaAllocator() override {
    stub_hold_events(false);
    device.limit(meter::unlimited, 0);
  }
  static at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::TensorOptions(cuda()).dtype(at::kByte)); }

  const CountedDevice& device = CountedDevices::of_process().at("cuda:0");
  Meter& meter = device.meter();
  const Bytes before = meter.live();
};

TEST_F(CudaAllocator, StandsWhereLibTorchAsksAndHasTheNameOfTheOneBelow) {
  EXPECT_TRUE(device.is_installed());
  EXPECT_EQ(cca::get()->name(), "native");
  EXPECT_EQ(c10::GetAllocator(c10::DeviceType::CUDA), cca::get());
  auto* const ours = cca::get();
  cca::allocator.store(nullptr);
  EXPECT_FALSE(device.is_installed());
  cca::allocator.store(ours);
}

TEST_F(CudaAllocator, CountsWhatLibTorchsOwnCounts) {
  const Bytes allocated = cuda_memory().allocated;
  {
    const at::Tensor one = bytes(1), two = bytes(3 << 20);
    EXPECT_EQ(meter.live() - before, 512 + (3 << 20));
    EXPECT_EQ(cuda_memory().allocated - allocated, meter.live() - before);
  }
  EXPECT_EQ(meter.live(), before);
}

TEST_F(CudaAllocator, CountsTheRestOfABlockThatIsNotSplit) {
  constexpr Bytes whole = 12 << 20, part = whole - (512 << 10);
  empty_cuda_cache();
  (void)bytes(whole);  // is all that is cached
  const Bytes allocated = cuda_memory().allocated;
  {
    const at::Tensor one = bytes(part);
    EXPECT_EQ(cuda_memory().allocated - allocated, whole);
    EXPECT_EQ(meter.live() - before, whole);
  }
  EXPECT_EQ(meter.live(), before);
  device.limit(before + part, 0);
  EXPECT_THROW((void)bytes(part), BudgetError);
  EXPECT_EQ(meter.live(), before);
  device.limit(before + whole, 0);
  EXPECT_EQ(bytes(part).numel(), part);
}

TEST_F(CudaAllocator, CountsRawMemory) {
  void* const one = cca::raw_alloc(5000);
  EXPECT_EQ(meter.live() - before, 5120);
  void* const two = cca::raw_alloc_with_stream(5000, c10::cuda::getStreamFromPool());
  EXPECT_EQ(meter.live() - before, 2 * 5120);
  cca::raw_delete(one);
  cca::raw_delete(two);
  EXPECT_EQ(meter.live(), before);
  void* const three = cca::get()->raw_allocate(5000);
  EXPECT_EQ(meter.live() - before, 5120);
  cca::get()->raw_deallocate(three);
  EXPECT_EQ(meter.live(), before);
}

TEST_F(CudaAllocator, CountsWhatAnotherStreamMayUseAsWaiting) {
  constexpr Bytes much = 6 << 20;
  {
    const at::Tensor used = bytes(much);
    cca::recordStream(used.storage().data_ptr(), c10::cuda::getStreamFromPool());
    stub_hold_events(true);
  }
  EXPECT_EQ(cuda_memory().waiting, much) << "the allocator below knows that another stream uses it";
  EXPECT_EQ(meter.live() - before, much);
  (void)bytes(1);
  EXPECT_EQ(meter.live() - before, much);
  stub_hold_events(false);
  (void)bytes(1);  // the allocator below looks
  (void)bytes(1);  // and this one asks it
  EXPECT_EQ(meter.live(), before);
}

TEST_F(CudaAllocator, WaitsForOtherStreamsBeforeItRefuses) {
  constexpr Bytes much = 6 << 20;
  {
    const at::Tensor used = bytes(much);
    cca::recordStream(used.storage().data_ptr(), c10::cuda::getStreamFromPool());
    stub_hold_events(true);
  }
  device.limit(before + much, 0);
  EXPECT_EQ(bytes(much).numel(), much);
}

TEST_F(CudaAllocator, SaysThatTheRoomInTheBudgetIsAllThereIs) {
  constexpr Bytes room = 5 << 20;
  (void)bytes(64 << 20);  // a large block is free
  std::size_t largest = 0;
  cca::cacheInfo(0, &largest);
  EXPECT_GE(largest, std::size_t{64} << 20);
  const auto [free, total] = cca::get()->getMemoryInfo(0);
  EXPECT_GT(free, std::size_t{1} << 30);
  device.limit(before + room, 0);
  largest = 0;
  cca::cacheInfo(0, &largest);
  EXPECT_EQ(largest, room);
  EXPECT_EQ(cca::get()->getMemoryInfo(0), std::pair(static_cast<std::size_t>(room), total));
  device.limit(before / 2, 0);
  EXPECT_EQ(cca::get()->getMemoryInfo(0).first, 0u);
}

}  // namespace
}  // namespace reprise::testing

#endif
