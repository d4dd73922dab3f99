// The meter: every byte of LibTorch's CPU allocator is counted, limited and told about.
#include "torch/memory/meter.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

C10_DECLARE_bool(caffe2_cpu_allocator_do_zero_fill);
C10_DECLARE_bool(caffe2_cpu_allocator_do_junk_fill);

namespace reprise {
using namespace internal;
namespace {

using meter::counted;

c10::DataPtr memory(std::size_t bytes) {
  return c10::GetCPUAllocator()->allocate(bytes);
}

c10::Storage storage(std::size_t bytes) {
  return {c10::Storage::use_byte_size_t(), bytes, memory(bytes), c10::GetCPUAllocator(), true};
}

meter::Header& header(const c10::Storage& of) {
  return *meter::header_of(*of.unsafeGetStorageImpl());
}

// What a test does to the process is undone after it.
class MeterTest : public ::testing::Test {
 protected:
  ~MeterTest() override {
    meter::limit(meter::unlimited);
    meter::fail_after(-1);
    meter::callbacks(former_.first, former_.second);
    EXPECT_EQ(meter::live(), live_before) << "leaked";
    EXPECT_EQ(meter::tracked(), tracked_before) << "leaked";
  }

  const Bytes live_before = meter::live();
  const Bytes tracked_before = meter::tracked();

 private:
  const std::pair<meter::Pressure, meter::OnFree> former_ = meter::callbacks(nullptr, nullptr);
};
using MeterThreadTest = MeterTest;

// ---- counting ------------------------------------------------------------------------------------------------------

TEST_F(MeterTest, EveryByteCountsAndTheHeaderToo) {
  for (const std::size_t bytes : {1, 63, 64, 65, 512, 4096, 65472, 65536, 100'000, 8 << 20}) {
    const c10::Storage one = storage(bytes);
    EXPECT_EQ(meter::live() - live_before, counted(bytes));
    EXPECT_EQ(header(one).bytes, counted(bytes));
    EXPECT_GE(counted(bytes), static_cast<Bytes>(bytes) + 64);
    EXPECT_LT(counted(bytes), static_cast<Bytes>(bytes) + 128);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.data()) % 64, 0u) << bytes;
    std::memset(one.mutable_data(), 1, bytes);
  }
  EXPECT_EQ(meter::live(), live_before);
}

TEST_F(MeterTest, NoBytesCountNothing) {
  const c10::Storage none = storage(0);
  EXPECT_EQ(meter::live(), live_before);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.data_ptr().get_deleter(), c10::GetCPUAllocator()->raw_deleter());
  EXPECT_EQ(meter::header_of(*none.unsafeGetStorageImpl()), nullptr);
}

TEST_F(MeterTest, MemoryFromElsewhereHasNoHeader) {
  float elsewhere[16] = {};
  const c10::Storage blob(c10::Storage::use_byte_size_t(), sizeof elsewhere,
                          c10::InefficientStdFunctionContext::makeDataPtr(
                              elsewhere, [](void*) {}, c10::Device(c10::DeviceType::CPU)),
                          nullptr, false);
  EXPECT_EQ(meter::header_of(*blob.unsafeGetStorageImpl()), nullptr);
  c10::Allocator* const other = c10::GetDefaultCPUAllocator();
  const c10::Storage others(c10::Storage::use_byte_size_t(), 64, other->allocate(64), other, true);
  EXPECT_EQ(meter::header_of(*others.unsafeGetStorageImpl()), nullptr);
  EXPECT_EQ(meter::live(), live_before);
}

TEST_F(MeterTest, RawMemoryAndCopiesWorkAsOfAnyAllocator) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  void* const raw = allocator.raw_allocate(100);
  std::memset(raw, 7, 100);
  EXPECT_EQ(meter::live() - live_before, counted(100));
  const c10::DataPtr copy = allocator.clone(raw, 100);
  EXPECT_EQ(std::memcmp(copy.get(), raw, 100), 0);
  EXPECT_TRUE(allocator.is_simple_data_ptr(copy));
  allocator.raw_deallocate(raw);
  EXPECT_EQ(meter::live() - live_before, counted(100));
}

TEST_F(MeterTest, ThePeakIsTheMostSinceTheMark) {
  { const c10::DataPtr large = memory(100'000); }
  meter::mark_peak();
  EXPECT_EQ(meter::peak(), live_before);
  {
    const c10::DataPtr one = memory(1000);
    { const c10::DataPtr two = memory(2000); }
    const c10::DataPtr three = memory(500);
  }
  EXPECT_EQ(meter::peak() - live_before, counted(1000) + counted(2000));
}

TEST_F(MeterTest, TrackedBytesEndWithTheirMemory) {
  {
    const c10::Storage one = storage(1000), two = storage(50);
    meter::track(header(one));
    meter::track(header(one));
    EXPECT_EQ(meter::tracked() - tracked_before, counted(1000)) << "once is enough";
    EXPECT_EQ(meter::other(), meter::live() - meter::tracked());
    meter::track(header(two));
    meter::untrack(header(two));
    meter::untrack(header(two));
    EXPECT_EQ(meter::tracked() - tracked_before, counted(1000));
  }
  EXPECT_EQ(meter::tracked(), tracked_before);
}

TEST_F(MeterTest, TheOtherPeakLeavesOutWhatIsTracked) {
  const Bytes before = meter::other();
  (void)meter::take_other_peak();
  const c10::Storage mine = storage(1000);
  meter::track(header(mine));
  { const c10::DataPtr workspace = memory(300); }
  EXPECT_EQ(meter::take_other_peak() - before, counted(1000)) << "before it was tracked";
  { const c10::DataPtr workspace = memory(300); }
  EXPECT_EQ(meter::take_other_peak() - before, counted(300));
  EXPECT_EQ(meter::take_other_peak(), before) << "now";
  meter::untrack(header(mine));
  EXPECT_EQ(meter::take_other_peak() - before, counted(1000));
  meter::track(header(mine));
  (void)meter::take_other_peak();
  ASSERT_TRUE(meter::charge(70));
  meter::discharge(70);
  EXPECT_EQ(meter::take_other_peak() - before, 70);
}

// ---- limiting ------------------------------------------------------------------------------------------------------

TEST_F(MeterTest, FailsBeforeTheFirstByteOver) {
  meter::mark_peak();
  meter::limit(live_before + counted(1000) + counted(64) - 1);
  const c10::DataPtr most = memory(1000);
  try {
    const c10::DataPtr over = memory(64);
    FAIL() << "one byte over";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(counted(64)) + " bytes wanted"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(meter::live() - live_before, counted(1000));
  EXPECT_EQ(meter::peak() - live_before, counted(1000));
  meter::limit(live_before + counted(1000) + counted(64));
  const c10::DataPtr exactly = memory(64);
  EXPECT_EQ(meter::peak(), meter::limit());
}

std::vector<c10::DataPtr> droppable;
std::vector<Bytes> asked;

TEST_F(MeterTest, PressureIsAskedWithTheBytesUntilTheyFit) {
  asked.clear();
  for (int i = 0; i < 5; ++i) droppable.push_back(memory(1000));
  meter::callbacks(
      [](Meter&, Bytes wanted) {
        asked.push_back(wanted);
        if (droppable.empty()) return false;
        droppable.pop_back();
        return true;
      },
      nullptr);
  meter::limit(live_before + 5 * counted(1000));
  const c10::DataPtr one = memory(2000);
  EXPECT_EQ(asked, std::vector<Bytes>(2, counted(2000)));
  EXPECT_EQ(droppable.size(), 3u);
  EXPECT_THROW(memory(5000), c10::OutOfMemoryError);
  EXPECT_TRUE(droppable.empty());
  EXPECT_EQ(meter::live() - live_before, counted(2000));
}

TEST_F(MeterTest, WhatPressureThrowsReachesTheCaller) {
  meter::callbacks([](Meter&, Bytes wanted) -> bool { throw wanted; }, nullptr);
  meter::limit(live_before + 100);
  meter::mark_peak();
  EXPECT_THROW(memory(1000), Bytes);
  EXPECT_EQ(meter::live(), live_before);
  EXPECT_EQ(meter::peak(), live_before);
}

TEST_F(MeterTest, TheReserveIsForChargesAndTheLastResort) {
  asked.clear();
  meter::callbacks(
      [](Meter&, Bytes wanted) {
        asked.push_back(wanted);
        return false;
      },
      nullptr);
  meter::limit(live_before + counted(1000) + 200, 200);
  EXPECT_EQ(meter::ceiling(), meter::limit() - 200);
  const c10::DataPtr most = memory(1000);
  EXPECT_TRUE(asked.empty());
  EXPECT_FALSE(meter::charge(201));
  EXPECT_TRUE(meter::charge(72));
  EXPECT_EQ(meter::live(), meter::limit() - 128);
  EXPECT_TRUE(asked.empty()) << "a charge never presses";
  const c10::DataPtr last = memory(64);
  EXPECT_EQ(asked.size(), 1u);
  EXPECT_EQ(meter::live(), meter::limit());
  EXPECT_FALSE(meter::charge(1));
  meter::discharge(72);
}

TEST_F(MeterTest, ALimitBelowWhatIsLiveStopsNewRequestsOnly) {
  const c10::DataPtr there = memory(1000);
  meter::limit(0);
  EXPECT_THROW(memory(1), c10::OutOfMemoryError);
  EXPECT_FALSE(meter::charge(1));
  EXPECT_NO_THROW(memory(0));
  meter::limit(meter::unlimited);
  EXPECT_NO_THROW(memory(1));
}

// ---- deaths --------------------------------------------------------------------------------------------------------

struct Dead {
  meter::Tag tag;
  Bytes bytes;
  bool tracked;
  char content;
};
std::vector<Dead> dead;

c10::Storage saved_from_death;

TEST_F(MeterTest, MemoryThatIsTakenAtItsDeathLivesOn) {
  meter::callbacks(nullptr, [](meter::Header& header) {
    header.tag = {};
    saved_from_death = meter::take(header, 2000);
    return true;
  });
  {
    c10::Storage tagged = storage(2000);
    header(tagged).tag = {.recording = 3, .value = 17};
    meter::track(header(tagged));
    *static_cast<char*>(tagged.mutable_data()) = 'x';
  }
  EXPECT_EQ(meter::live() - live_before, counted(2000));
  EXPECT_EQ(*static_cast<const char*>(saved_from_death.data()), 'x');
  EXPECT_EQ(saved_from_death.nbytes(), 2000u);
  EXPECT_FALSE(header(saved_from_death).tracked);
  saved_from_death = c10::Storage();
  EXPECT_EQ(meter::live(), live_before);
}

TEST_F(MeterTest, TaggedMemoryIsShownToTheCallbackBeforeItIsFreed) {
  dead.clear();
  meter::callbacks(nullptr, [](meter::Header& header) {
    dead.push_back({header.tag, header.bytes, header.tracked, *reinterpret_cast<char*>(&header + 1)});
    return false;
  });
  {
    const c10::Storage nobodys = storage(100);
    c10::Storage tagged = storage(2000);
    header(tagged).tag = {.recording = 3, .value = 17};
    meter::track(header(tagged));
    *static_cast<char*>(tagged.mutable_data()) = 'x';
    const c10::Storage second_handle = tagged;
    tagged = {};
    EXPECT_TRUE(dead.empty()) << "not the last handle";
  }
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].tag.recording, 3u);
  EXPECT_EQ(dead[0].tag.value, 17);
  EXPECT_EQ(dead[0].bytes, counted(2000));
  EXPECT_TRUE(dead[0].tracked);
  EXPECT_EQ(dead[0].content, 'x');
}

TEST_F(MeterTest, ReusedMemoryBelongsToNoRecording) {
  for (const std::size_t bytes : {512, 1 << 20}) {
    for (int i = 0; i < 3; ++i) {
      const c10::Storage one = storage(bytes);
      EXPECT_EQ(header(one).tag.recording, 0u);
      EXPECT_FALSE(header(one).tracked);
      header(one).tag.recording = 1;
      meter::track(header(one));
    }
  }
}

// ---- failures ------------------------------------------------------------------------------------------------------

TEST_F(MeterTest, TheAllocationAskedForFailsOnce) {
  const std::uint64_t before = meter::allocations();
  for (const int n : {0, 3}) {
    meter::fail_after(n);
    for (int i = 0; i < n; ++i) EXPECT_NO_THROW(memory(100));
    EXPECT_NO_THROW(memory(0)) << "does not count";
    EXPECT_THROW(memory(100), std::bad_alloc);
    EXPECT_EQ(meter::live(), live_before);
    EXPECT_NO_THROW(memory(100));
  }
  meter::fail_after(0);
  meter::fail_after(-1);
  EXPECT_NO_THROW(memory(100));
  EXPECT_EQ(meter::allocations() - before, 2u + 5u + 1u) << "failed ones count";
}

TEST_F(MeterTest, NonsenseIsRefused) {
  EXPECT_THROW(memory(static_cast<std::size_t>(-1)), c10::OutOfMemoryError);
  EXPECT_THROW(memory(static_cast<std::size_t>(-64)), c10::OutOfMemoryError);
  EXPECT_EQ(meter::live(), live_before);
}

#ifndef REPRISE_SANITIZED  // there such a request ends the program
TEST_F(MeterTest, WhatTheSystemDoesNotHaveIsNotCounted) {
  meter::mark_peak();
  EXPECT_THROW(memory(std::size_t{1} << 50), c10::OutOfMemoryError);
  EXPECT_EQ(meter::live(), live_before);
  EXPECT_EQ(meter::peak(), live_before);
}
#endif

// ---- LibTorch ------------------------------------------------------------------------------------------------------

TEST_F(MeterTest, KnowsWhenAnotherAllocatorIsInFront) {
  c10::Allocator* const meters = c10::GetCPUAllocator();
  ASSERT_TRUE(meter::is_installed());
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 101);
  EXPECT_FALSE(meter::is_installed());
  EXPECT_EQ(meter::header_of(*storage(100).unsafeGetStorageImpl()), nullptr);
  c10::SetCPUAllocator(meters, 101);
  EXPECT_TRUE(meter::is_installed());
}

TEST_F(MeterTest, TheProfilerSeesItAsItSeesAnyAllocator) {
  struct Profiler : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
      told.push_back(bytes);
    }
    void reportOutOfMemory(std::int64_t bytes, std::size_t, std::size_t, c10::Device) override { refused = bytes; }
    [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
    std::vector<std::int64_t> told;
    std::int64_t refused = 0;
  };
  const c10::DataPtr before = memory(10);
  const auto profiler = std::make_shared<Profiler>();
  {
    const c10::DebugInfoGuard profiling(c10::DebugInfoKind::PROFILER_STATE, profiler);
    { const c10::DataPtr one = memory(1000); }
    meter::limit(meter::live());
    EXPECT_THROW(memory(2000), c10::OutOfMemoryError);
    meter::limit(meter::unlimited);
  }
  { const c10::DataPtr after = memory(10); }
  EXPECT_EQ(profiler->told, (std::vector<std::int64_t>{1000, -1000}));
  EXPECT_EQ(profiler->refused, counted(2000));
}

TEST_F(MeterTest, MemoryIsFilledWhenLibTorchIsAskedTo) {
  FLAGS_caffe2_cpu_allocator_do_junk_fill = true;
  const c10::DataPtr junk = memory(4001);
  FLAGS_caffe2_cpu_allocator_do_junk_fill = false;
  FLAGS_caffe2_cpu_allocator_do_zero_fill = true;
  const c10::DataPtr zero = memory(4001);
  FLAGS_caffe2_cpu_allocator_do_zero_fill = false;
  for (int i = 0; i < 1000; ++i) {
    const float number = static_cast<const float*>(junk.get())[i];
    ASSERT_NE(number, number);
    ASSERT_EQ(static_cast<const float*>(zero.get())[i], 0);
  }
}

// ---- threads -------------------------------------------------------------------------------------------------------

void in_threads(int count, void (*work)(unsigned seed)) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, static_cast<unsigned>(i));
  for (std::thread& thread : threads) thread.join();
}

std::size_t some_bytes(std::minstd_rand& random) {
  return random() % 4 == 0 ? random() % 200'000 + 1 : random() % 2000 + 1;
}

TEST_F(MeterThreadTest, TheLimitIsNeverPassed) {
  meter::keep_heap();
  meter::mark_peak();
  meter::limit(live_before + 1'000'000);
  static std::atomic<int> refused;
  refused = 0;
  in_threads(8, [](unsigned seed) {
    std::minstd_rand random(seed + 1);
    std::vector<c10::DataPtr> held(16);
    for (int i = 0; i < 4000; ++i) {
      try {
        held[random() % held.size()] = memory(some_bytes(random));
      } catch (const c10::OutOfMemoryError&) {
        ++refused;
        held[random() % held.size()].clear();
      }
    }
  });
  EXPECT_LE(meter::peak(), meter::limit());
  EXPECT_GT(meter::peak(), meter::limit() - 200'000);
  EXPECT_GT(refused, 0);
}

TEST_F(MeterThreadTest, PressureMayFreeWhatOtherThreadsMade) {
  static std::mutex mutex;
  static std::vector<c10::DataPtr> pool;
  meter::callbacks(
      [](Meter&, Bytes) {
        c10::DataPtr victim;  // freed without the lock
        const std::lock_guard lock(mutex);
        if (pool.empty()) return false;
        victim = std::move(pool.back());
        pool.pop_back();
        return true;
      },
      nullptr);
  meter::mark_peak();
  meter::limit(live_before + 2'000'000);
  in_threads(6, [](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (int i = 0; i < 3000; ++i) {
      try {
        c10::DataPtr mine = memory(some_bytes(random));
        const std::lock_guard lock(mutex);
        pool.push_back(std::move(mine));
      } catch (const c10::OutOfMemoryError&) {
        // The others hold all of it right now.
      }
    }
  });
  EXPECT_LE(meter::peak(), meter::limit());
  pool.clear();
}

TEST_F(MeterThreadTest, CountsAreExactAfterAnyMixture) {
  static std::atomic<int> tagged, deaths;
  tagged = deaths = 0;
  meter::callbacks(nullptr, [](meter::Header&) {
    ++deaths;
    return false;
  });
  const Bytes ceiling = live_before + 5'000'000;
  meter::limit(ceiling, 1000);
  in_threads(6, [](unsigned seed) {
    std::minstd_rand random(seed + 1);
    std::vector<c10::Storage> held(20);
    for (int i = 0; i < 3000; ++i) {
      c10::Storage& one = held[random() % held.size()];
      try {
        one = storage(some_bytes(random));
      } catch (const c10::OutOfMemoryError&) {
        continue;
      }
      if (random() % 2 == 0) meter::track(header(one));
      if (random() % 3 == 0) meter::untrack(header(one));
      if (random() % 2 == 0 && header(one).tag.recording == 0) {
        header(one).tag.recording = 1;
        ++tagged;
      }
      if (meter::charge(100)) meter::discharge(100);
      (void)meter::take_other_peak();
    }
  });
  EXPECT_EQ(deaths, tagged);
}

}  // namespace
}  // namespace reprise
