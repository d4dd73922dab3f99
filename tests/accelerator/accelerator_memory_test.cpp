#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "accelerator/accelerator_fixture.h"
#include "accelerator/device_memory.h"

namespace reprise::testing::accelerator {
namespace {

using at::Tensor;

constexpr std::int64_t quarter = 256 * 1024;      // bytes
constexpr std::int64_t in_quarter = quarter / 4;  // numbers

// Asks the system to do it, which says no where the process would end.
class HostAccess {
 public:
  HostAccess() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~HostAccess() {
    for (const int end : ends_) ::close(end);
  }
  bool reads(const void* at) { return ::write(ends_[1], at, 1) == 1; }
  bool writes(void* at) { return ::write(ends_[1], "x", 1) == 1 && ::read(ends_[0], at, 1) == 1; }

 private:
  std::array<int, 2> ends_{};
};

bool is_poison(const void* device_address, std::int64_t bytes) {
  const auto* const at = static_cast<const unsigned char*>(kernel_address(device_address));
  for (std::int64_t i = 0; i < bytes; ++i)
    if (at[i] != poison) return false;
  return true;
}

class AcceleratorMemory : public Accelerator {};

TEST_F(AcceleratorMemory, CannotBeReadOrWrittenByTheHost) {
  const Tensor x = full(16, 3);
  synchronize();
  HostAccess host;
  EXPECT_FALSE(host.reads(x.const_data_ptr()));
  EXPECT_EQ(errno, EFAULT);
  EXPECT_FALSE(host.writes(x.mutable_data_ptr()));
  EXPECT_TRUE(host.reads(kernel_address(x.const_data_ptr()))) << "the test would see nothing";
  EXPECT_TRUE(all_are(x, 3));
}

TEST_F(AcceleratorMemory, IsPoisonWhenItIsFresh) {
  const Tensor x = at::empty({100}, at::TensorOptions(device_));
  synchronize();
  EXPECT_TRUE(is_poison(x.const_data_ptr(), x.nbytes()));
}

TEST_F(AcceleratorMemory, IsPoisonedOnlyWhenItsStreamComesToTheFree) {
  Tensor x = full(in_quarter, 3);
  const void* const at = x.const_data_ptr();
  synchronize();
  Tensor y;
  {
    const Held held(main_);
    y = x + 1;
    x = Tensor();
    EXPECT_FALSE(is_poison(at, 1));
  }
  EXPECT_TRUE(all_are(y, 4));
  EXPECT_TRUE(is_poison(at, quarter));
}

TEST_F(AcceleratorMemory, OfAFreedTensorIsThereAtOnceForItsStreamAndForNoOther) {
  Tensor x = full(in_quarter, 3);
  const void* const at = x.const_data_ptr();
  x = Tensor();
  {
    const c10::StreamGuard on_side(guard_.getNewStream(device_));
    EXPECT_NE(full(in_quarter, 1).const_data_ptr(), at);
  }
  EXPECT_EQ(full(in_quarter, 1).const_data_ptr(), at);
}

// What a stream reads that the allocator was not told of: the device shows the mistake.
TEST_F(AcceleratorMemory, FreedWhileAnotherStreamReadsItIsPoisonUnlessThatWasSaid) {
  for (const bool said : {false, true}) {
    const c10::Stream side = guard_.getNewStream(device_);
    Tensor x = full(in_quarter, 3), y;
    synchronize();
    std::optional<Held> held(side);
    {
      const c10::StreamGuard on_side(side);
      y = x + 1;
    }
    if (said) x.record_stream(side);
    x = Tensor();
    EXPECT_EQ(memory().waiting, said ? quarter : 0);
    guard_.synchronizeStream(main_);  // it has poisoned what was freed for it
    held.reset();
    synchronize();
    EXPECT_EQ(all_are(y, 4), said);
    // Only now, when somebody allocates, it is seen that the other stream is through.
    EXPECT_EQ(memory().waiting, said ? quarter : 0);
    y = full(1, 0);
    EXPECT_EQ(memory().waiting, 0);
  }
}

TEST_F(AcceleratorMemory, IsCountedAsLiveWaitingAndReserved) {
  mark_peak();
  Tensor x = full(in_quarter, 1), y = full(in_quarter + 1, 1);
  EXPECT_EQ(memory().live, 2 * quarter + 512);
  EXPECT_EQ(memory().reserved, memory().live);
  x = Tensor();
  EXPECT_EQ(memory().live, quarter + 512);
  EXPECT_EQ(memory().reserved, 2 * quarter + 512);
  EXPECT_EQ(memory().live_peak, 2 * quarter + 512);
  empty_cache();
  EXPECT_EQ(memory().reserved, quarter + 512);
  EXPECT_EQ(memory().reserved_peak, 2 * quarter + 512);
  mark_peak();
  EXPECT_EQ(memory().live_peak, quarter + 512);

  const auto stats = c10::getDeviceAllocator(type)->getDeviceStats(0);
  EXPECT_EQ(stats.allocated_bytes[0].current, memory().live);
  EXPECT_EQ(stats.active_bytes[0].current, memory().live);
  EXPECT_EQ(stats.reserved_bytes[0].current, memory().reserved);
}

TEST_F(AcceleratorMemory, IsRefusedBeyondTheCapacity) {
  capacity(4 * quarter);
  std::vector<Tensor> all;
  for (int i = 0; i < 4; ++i) all.push_back(full(in_quarter, 1));
  EXPECT_THROW(full(1, 1), c10::OutOfMemoryError);
  EXPECT_EQ(memory().live, 4 * quarter);
  all.resize(2);
  // What is cached in other sizes is given back for it.
  const Tensor larger = full(2 * in_quarter, 7);
  EXPECT_TRUE(all_are(larger, 7));
  EXPECT_EQ(memory().reserved_peak, 4 * quarter);
}

TEST_F(AcceleratorMemory, ThatWaitsForAnotherStreamIsWaitedForBeforeAnythingIsRefused) {
  capacity(4 * quarter);
  const c10::Stream side = guard_.getNewStream(device_);
  Tensor x = full(4 * in_quarter, 3);
  synchronize();
  {
    const c10::StreamGuard on_side(side);
    for (int i = 0; i < 10; ++i) x.add_(1);
  }
  x.record_stream(side);
  x = Tensor();
  EXPECT_TRUE(all_are(full(4 * in_quarter, 5), 5));
}

TEST_F(AcceleratorMemory, InPiecesIsRefusedAlthoughTheBytesAreThere) {
  segments_of(2 * quarter);
  capacity(4 * quarter);
  std::vector<Tensor> all;
  for (int i = 0; i < 4; ++i) all.push_back(full(in_quarter, static_cast<float>(i)));
  EXPECT_EQ(memory().reserved, 4 * quarter);
  all[1] = all[2] = Tensor();  // one of each segment
  EXPECT_EQ(memory().live, 2 * quarter);
  EXPECT_THROW(full(2 * in_quarter, 1), c10::OutOfMemoryError);
  all[0] = Tensor();
  EXPECT_TRUE(all_are(full(2 * in_quarter, 1), 1)) << "neighbours are one again";
  EXPECT_TRUE(all_are(all[3], 3));
}

TEST_F(AcceleratorMemory, IsRefusedOnceWhenATestAsksForIt) {
  fail_allocation_after(1);
  const Tensor x = at::empty({1}, at::TensorOptions(device_));
  EXPECT_THROW(at::empty({1}, at::TensorOptions(device_)), c10::OutOfMemoryError);
  EXPECT_NO_THROW(at::empty({1}, at::TensorOptions(device_)));
}

TEST_F(AcceleratorMemory, OfTwoDevicesIsCountedApart) {
  const Tensor x = full(in_quarter, 1, 1);
  EXPECT_EQ(memory(0).live, 0);
  EXPECT_EQ(memory(1).live, quarter);
  capacity(quarter, 1);
  EXPECT_THROW(full(1, 1, 1), c10::OutOfMemoryError);
  EXPECT_NO_THROW(full(1, 1, 0));
  capacity(unlimited, 1);
}

TEST_F(AcceleratorMemory, KeepsItsContentsWhenAStorageGrows) {
  Tensor x = full(4, 3);
  x.resize_({8});
  EXPECT_TRUE(all_are(x.narrow(0, 0, 4), 3));
  EXPECT_EQ(memory().live, 512);
  x.set_();
  EXPECT_EQ(memory().live, 0);
}

// ---- an allocator in front ----

// As the meter of a device is one: counts, and tells the one below about streams in that one's name.
class Counting final : public c10::DeviceAllocator {
 public:
  Counting() {
    below_ = c10::getDeviceAllocator(type);
    c10::SetAllocator(type, this, 100);
  }
  ~Counting() override { c10::SetAllocator(type, below_, 100); }

  c10::DataPtr allocate(std::size_t n) override {
    c10::DataPtr data = below_->allocate(n);
    if (n == 0) return data;
    const std::int64_t bytes = static_cast<std::int64_t>(n + 511) / 512 * 512;
    const std::lock_guard lock(mutex_);
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    sizes_[data.get()] = bytes;
    EXPECT_TRUE(data.compare_exchange_deleter(below_->raw_deleter(), &free_memory));
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, std::size_t n) const override { below_->copy_data(to, from, n); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t pool) override { below_->emptyCache(pool); }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    c10::DataPtr its(data.get(), data.get(), below_->raw_deleter(), data.device());
    below_->recordStream(its, stream);
    its.release_context();
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    return below_->getDeviceStats(index);
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override { below_->resetAccumulatedStats(index); }
  void resetPeakStats(c10::DeviceIndex index) override { below_->resetPeakStats(index); }

  [[nodiscard]] std::int64_t live() const { return live_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }

 private:
  static void free_memory(void* data) {
    if (data == nullptr) return;
    const std::lock_guard lock(mutex_);
    live_ -= sizes_.at(data);
    sizes_.erase(data);
    below_->raw_deleter()(data);
  }
  // Memory may be freed when this is long gone.
  static inline std::mutex mutex_;
  static inline c10::DeviceAllocator* below_ = nullptr;
  static inline std::map<void*, std::int64_t> sizes_;
  static inline std::int64_t live_ = 0, peak_ = 0;
};

TEST_F(AcceleratorMemory, IsSeenByAnAllocatorInFrontByteForByte) {
  Counting front;
  torch::nn::Sequential model(torch::nn::Linear(64, 64), torch::nn::GELU(), torch::nn::Dropout(0.1),
                              torch::nn::Linear(64, 8));
  model->to(device_);
  for (int i = 0; i < 2; ++i) {
    const Tensor x = torch::randn({32, 64}, at::TensorOptions(device_));
    model->forward(x).square().mean().backward();
    EXPECT_EQ(front.live(), memory().live);
  }
  EXPECT_GT(front.peak(), front.live());
  EXPECT_EQ(front.peak(), memory().live_peak);
}

TEST_F(AcceleratorMemory, OfAnAllocatorInFrontWaitsForStreamsIfThatOneSaysSo) {
  const c10::Stream side = guard_.getNewStream(device_);
  Tensor x = full(in_quarter, 3);
  // A pointer with another deleter is not known below.
  c10::getDeviceAllocator(type)->recordStream(c10::DataPtr(x.mutable_data_ptr(), device_), side);
  x = Tensor();
  EXPECT_EQ(memory().waiting, 0);

  Counting front;
  x = full(in_quarter, 3);
  guard_.recordDataPtrOnStream(x.storage().data_ptr(), side);
  x = Tensor();
  EXPECT_EQ(memory().waiting, quarter);
}

}  // namespace
}  // namespace reprise::testing::accelerator
