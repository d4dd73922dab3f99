#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Event.h>

#include <optional>

#include "accelerator/accelerator_fixture.h"

namespace reprise::testing::accelerator {
namespace {

using at::Tensor;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class AcceleratorStreams : public Accelerator {
 protected:
  static c10::Event event(c10::EventFlag flag = c10::EventFlag::BACKEND_DEFAULT) { return {type, flag}; }
  static void each_takes(nanoseconds duration) {
    durations([duration](const Kernel&) { return duration; });
  }
};

// ---- what runs when ----

TEST_F(AcceleratorStreams, LetTheHostGoOn) {
  Tensor x = numbers(10), y;
  synchronize();
  c10::Event after = event();
  {
    const Held held(main_);
    y = x + x;
    after.record(main_);
    EXPECT_FALSE(after.query());
    EXPECT_FALSE(guard_.queryStream(main_));
    EXPECT_THROW(guard_.synchronizeStream(main_), c10::Error) << "it would never come back";
  }
  after.synchronize();
  EXPECT_TRUE(after.query());
  EXPECT_TRUE(at::equal(y.cpu(), at::arange(10) * 2));
}

TEST_F(AcceleratorStreams, WaitForEventsAsTheyWereWhenTheWaitWasAsked) {
  const c10::Stream side = guard_.getNewStream(device_);
  const Tensor x = full(10, 1);
  synchronize();
  c10::Event ready = event();
  std::optional<Held> held(main_);
  x.add_(1);
  ready.record(main_);
  ready.block(side);
  Tensor y;
  {
    const c10::StreamGuard on_side(side);
    y = x * 10;
  }
  ready.record(main_);  // another time, which nobody waits for
  EXPECT_FALSE(guard_.queryStream(side));
  held.reset();
  guard_.synchronizeStream(side);
  EXPECT_TRUE(all_are(y, 20));
  y.record_stream(main_);
}

TEST_F(AcceleratorStreams, ReadNumbersOfTheHostWhenAKernelIsLaunched) {
  const Tensor x = full(10, 2);
  Tensor number = at::full({}, 3.0F);
  synchronize();
  Tensor y;
  {
    const Held held(main_);
    y = x * number;
    number.fill_(1000);
  }
  EXPECT_TRUE(all_are(y, 6));
  EXPECT_THROW(x + at::ones({10}), c10::Error) << "no tensors of the host";
  EXPECT_THROW(x + full(10, 1, 1), c10::Error) << "nor of another device";
}

TEST_F(AcceleratorStreams, OfSeveralDevicesMeetInACopy) {
  const Tensor x = full(100, 1);
  synchronize();
  slow_down(std::chrono::microseconds(500));
  x.add_(1);
  Tensor y = x.to(c10::Device(type, 1));
  x.add_(1);  // not before the copy
  EXPECT_TRUE(all_are(y, 2));
  EXPECT_TRUE(all_are(x, 3));
}

// ---- time ----

TEST_F(AcceleratorStreams, HaveAClockThatEventsRead) {
  const Tensor x = full(10, 1);
  each_takes(milliseconds(2));
  c10::Event begin = event(), end = event();
  begin.record(main_);
  for (int i = 0; i < 3; ++i) x.add_(1);
  end.record(main_);
  end.synchronize();
  EXPECT_EQ(begin.elapsedTime(end), 6);

  durations([](const Kernel& kernel) { return nanoseconds(kernel.bytes); });
  begin.record(main_);
  at::Tensor(x).fill_(2);
  end.record(main_);
  end.synchronize();
  EXPECT_EQ(begin.elapsedTime(end), 40e-6);
}

TEST_F(AcceleratorStreams, WithoutDurationsHaveAClockThatGoesOn) {
  const Tensor x = at::ones({200, 200}, at::TensorOptions(device_));
  c10::Event begin = event(), end = event();
  begin.record(main_);
  x.mm(x);
  end.record(main_);
  end.synchronize();
  EXPECT_GT(begin.elapsedTime(end), 0);
}

TEST_F(AcceleratorStreams, OverlapOnTheClock) {
  const c10::Stream side = guard_.getNewStream(device_);
  const Tensor x = full(10, 1), y = full(10, 1);
  synchronize();
  each_takes(milliseconds(1));
  c10::Event begin = event(), ready = event(), end = event();
  begin.record(main_);
  begin.block(side);
  {
    const c10::StreamGuard on_side(side);
    for (int i = 0; i < 5; ++i) y.add_(1);
    ready.record(side);
  }
  for (int i = 0; i < 3; ++i) x.add_(1);
  ready.block(main_);  // at 5, of which it had 3 to do
  x.add_(y);
  end.record(main_);
  end.synchronize();
  EXPECT_EQ(begin.elapsedTime(end), 6);
}

TEST_F(AcceleratorStreams, DoNotBeginBeforeTheHostThatWaitedForAnother) {
  const c10::Stream side = guard_.getNewStream(device_);
  const Tensor x = full(10, 1), y = full(10, 1);
  synchronize();
  each_takes(milliseconds(1));
  c10::Event begin = event(), end = event();
  begin.record(main_);
  for (int i = 0; i < 4; ++i) x.add_(1);
  guard_.synchronizeStream(main_);
  {
    const c10::StreamGuard on_side(side);
    y.add_(1);
    end.record(side);
  }
  end.synchronize();
  EXPECT_EQ(begin.elapsedTime(end), 5);
}

TEST_F(AcceleratorStreams, GiveNoTimeToEventsThatDidNotAskForIt) {
  c10::Event one = event(c10::EventFlag::PYTORCH_DEFAULT), other = event(c10::EventFlag::PYTORCH_DEFAULT);
  one.record(main_);
  other.record(main_);
  other.synchronize();
  EXPECT_THROW(one.elapsedTime(other), c10::Error);
}

// ---- the host's side of copies ----

TEST_F(AcceleratorStreams, CopyToPinnedMemoryWhileTheHostGoesOn) {
  const Tensor x = numbers(1000), pinned = at::empty({1000}, at::TensorOptions(at::kLong).pinned_memory(true));
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_FALSE(at::empty({1000}).is_pinned());
  synchronize();
  const auto waits = counts().waits;
  {
    const Held held(main_);
    at::Tensor(pinned).copy_(x, true);
    EXPECT_FALSE(at::equal(pinned, at::arange(1000)));
  }
  EXPECT_EQ(counts().waits, waits);
  synchronize();
  EXPECT_TRUE(at::equal(pinned, at::arange(1000)));
}

TEST_F(AcceleratorStreams, PutIntoPinnedMemoryAndGetBackTheSameBits) {
  const c10::Stream copies = guard_.getNewStream(device_);
  slow_down(std::chrono::microseconds(300));
  Tensor x = at::randn({4096}, at::TensorOptions(device_)), back;
  const Tensor expected = x.cpu();
  const auto bytes = static_cast<std::int64_t>(x.nbytes());
  c10::Event ready = event(), got = event();
  Tensor pinned = at::empty({4096}, at::TensorOptions().pinned_memory(true));
  std::optional<Held> held(copies);
  ready.record(main_);
  ready.block(copies);
  {
    const c10::StreamGuard on_copies(copies);
    pinned.copy_(x, true);
  }
  x.record_stream(copies);
  x = Tensor();
  EXPECT_EQ(memory().live, 0);
  EXPECT_EQ(memory().waiting, bytes);
  held.reset();
  {
    const c10::StreamGuard on_copies(copies);
    back = at::empty({4096}, at::TensorOptions(device_));
    back.copy_(pinned, true);
    got.record(copies);
  }
  got.block(main_);
  back.record_stream(main_);
  EXPECT_TRUE(at::equal(back.cpu(), expected));
}

TEST_F(AcceleratorStreams, KeepPinnedMemoryThatTheyStillUse) {
  at::HostAllocator& host = *at::getHostAllocator(type);
  const auto before = host.get_stats().allocated_bytes.current;
  const Tensor x = full(16, 3);
  synchronize();
  {
    const Held held(main_);
    Tensor pinned = at::empty({16}, at::TensorOptions().pinned_memory(true));
    pinned.copy_(x, true);
    pinned = Tensor();
    EXPECT_EQ(host.get_stats().allocated_bytes.current, before + 64);
    EXPECT_EQ(host.get_stats().active_bytes.current, before);
  }
  synchronize();
  host.empty_cache();
  EXPECT_EQ(host.get_stats().allocated_bytes.current, before);
}

// ---- faults ----

TEST_F(AcceleratorStreams, ThrowWhatAKernelThrewWhenTheyAreWaitedFor) {
  const Tensor x = full(10, 1);
  synchronize();
  fail_kernel_after(1);
  x.add_(1);
  x.mul_(2);
  x.add_(1);
  try {
    synchronize();
    FAIL() << "nothing was thrown";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("the kernel mul"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(synchronize()) << "once is enough";
  EXPECT_TRUE(all_are(x, 3));
}

TEST_F(AcceleratorStreams, ThatWereDestroyedTakeNoMoreKernelsAndGiveTheirMemoryBack) {
  const c10::Stream side = guard_.getNewStream(device_);
  Tensor x;
  {
    const c10::StreamGuard on_side(side);
    x = full(10, 1);
    destroy(side);
    EXPECT_THROW(x.add_(1), c10::Error);
  }
  EXPECT_TRUE(all_are(x, 1));
  x = Tensor();
  EXPECT_EQ(memory().live, 0);
}

// ---- random numbers ----

TEST_F(AcceleratorStreams, DrawWhatSeedAndOffsetSay) {
  at::Generator generator = at::globalContext().defaultGenerator(device_);
  torch::manual_seed(7);
  EXPECT_EQ(generator.current_seed(), 7);
  EXPECT_EQ(generator.get_offset(), 0);
  const Tensor x = at::ones({1000}, at::TensorOptions(device_));
  const Tensor first = at::rand_like(x);
  const auto offset = generator.get_offset();
  EXPECT_GT(offset, 0);
  const Tensor dropped = at::dropout(x, 0.5, true);
  const auto after = generator.get_offset();
  EXPECT_GT(after, offset);
  EXPECT_FALSE(at::equal(at::dropout(x, 0.5, true), dropped));

  generator.set_offset(offset);
  EXPECT_TRUE(at::equal(at::dropout(x, 0.5, true), dropped));
  EXPECT_EQ(generator.get_offset(), after);

  at::Generator other = at::globalContext().getAcceleratorHooksInterface(type).getNewGenerator(0);
  other.set_current_seed(7);
  EXPECT_TRUE(at::equal(at::empty_like(x).uniform_(0, 1, other), first));
  EXPECT_EQ(other.get_offset(), offset);
  EXPECT_EQ(generator.get_offset(), after) << "it was not asked";
  const Tensor state = other.get_state();
  const Tensor next = at::empty_like(x).uniform_(0, 1, other);
  other.set_state(state);
  EXPECT_TRUE(at::equal(at::empty_like(x).uniform_(0, 1, other), next));
  EXPECT_THROW(other.set_offset(3), c10::Error);
}

}  // namespace
}  // namespace reprise::testing::accelerator
