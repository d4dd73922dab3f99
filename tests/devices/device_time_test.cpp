// Time on an accelerator, by its events: what plans promise is what steps take there. Kernels have known durations on
// the clock of the simulated one, so nothing here depends on how busy the machine is.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <utility>

#include "accelerator/accelerator.h"
#include "devices/device_training.h"

namespace reprise::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Three microseconds, and a nanosecond for 20 bytes.
nanoseconds duration_of(const accelerator::Kernel& kernel) {
  return nanoseconds(3000 + kernel.bytes / 20);
}

class DeviceTime : public ::testing::Test {
 protected:
  DeviceTime() { accelerator::durations(duration_of); }
  ~DeviceTime() override { accelerator::durations({}); }

  static std::pair<double, Bytes> plain_time_and_peak(const Trained& trained) {
    (void)timed_step(trained, nullptr);
    accelerator::mark_peak();
    const double time = timed_step(trained, nullptr);
    return {time, accelerator::memory().live_peak};
  }
};

TEST_F(DeviceTime, OfAPlainStepIsTheSumOfItsKernels) {
  const Trained trained = small_gpt();
  const double time = plain_time_and_peak(trained).first;
  EXPECT_GT(time, 0);
  EXPECT_DOUBLE_EQ(timed_step(trained, nullptr), time) << "known durations are exact";
}

// As in a training that never waits: when a step begins, the device is at the one before.
TEST_F(DeviceTime, IsKnownThoughTheDeviceIsAlwaysBehind) {
  const Trained trained = two_streams();
  (void)timed_step(trained, nullptr);
  accelerator::durations([](const accelerator::Kernel&) { return milliseconds(50); });
  accelerator::slow_down(milliseconds(1));
  SessionOptions options;
  options.device = device().str();
  Session session(options);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(accelerator::type).getStream(device());
  std::vector<c10::Event> ended;
  for (int i = 0; i < 6; ++i) {
    if (i >= 2) ended[i - 2].synchronize();
    {
      const Step step = session.step();
      trained.loss().backward();
    }
    ended.emplace_back(accelerator::type).record(stream);
  }
  accelerator::slow_down({});
  const Trace trace = session.trace().value();
  int seen = 0;
  for (const Operator& op : trace.operators) {
    if (!op.name.starts_with("aten::tanh")) continue;
    EXPECT_NEAR(op.cost, 50e3, 1) << "microseconds";
    ++seen;
  }
  EXPECT_EQ(seen, 1);
  accelerator::synchronize();
}

TEST_F(DeviceTime, IsWhatPlansPromise) {
  const Trained trained = small_gpt();
  const auto [plain, peak] = plain_time_and_peak(trained);
  for (const int percent : {80, 60, 45, 35}) {
    SCOPED_TRACE(std::to_string(percent) + " %");
    SessionOptions options;
    options.device = device().str();
    options.budget = peak * percent / 100;
    options.planning_time = milliseconds(300);
    options.planning_share = std::numeric_limits<double>::infinity();
    Session session(options);
    for (int i = 0; i < 7; ++i) {  // costs are told a step late, and settled after four of them
      (void)timed_step(trained, &session);
      session.wait_for_plan();
    }
    const double measured = timed_step(trained, &session) / plain - 1;
    const Summary summary = session.summary();
    ASSERT_TRUE(summary.followed_plan);
    ASSERT_GT(*summary.promised_overhead, 0.001) << "there is something to recompute";
    EXPECT_NEAR(measured, *summary.promised_overhead, 0.1 * *summary.promised_overhead);
    EXPECT_NEAR(measured, summary.overhead(), 0.1 * measured) << "what the summary says";
    EXPECT_NEAR(session.trace().value().total_cost(), plain, 0.05 * plain);
  }
}

}  // namespace
}  // namespace reprise::testing
