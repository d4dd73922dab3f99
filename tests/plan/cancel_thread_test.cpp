// Plans and curves that another thread cancels.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "reprise/plan/curve.h"
#include "reprise/plan/planner.h"
#include "support/random_trace.h"
#include "support/sanitized.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::random_graph;
using testing::sanitized;
using Seconds = std::chrono::duration<double>;

TEST(Cancelled, BestReturnsTheBestSoFarSoon) {
  const Trace trace = random_graph(4, 400);
  std::atomic<bool> cancel{false};
  PlanOptions options;
  options.budget = (floor_of(trace).bytes + 4 * keep_everything(trace).budget) / 5;
  options.time_limit = std::chrono::minutes(10);
  options.cancel = &cancel;
  std::chrono::steady_clock::time_point cancelled_at;
  std::thread canceller([&] {
    std::this_thread::sleep_for(Seconds(sanitized ? 3 : 0.5));
    cancelled_at = std::chrono::steady_clock::now();
    cancel.store(true);
  });
  const PlanResult result = make_plan(trace, options);
  const auto returned_at = std::chrono::steady_clock::now();
  canceller.join();
  if (result.status == PlanStatus::optimal) GTEST_SKIP() << "proven before it could be cancelled";
  EXPECT_TRUE(result.cancelled);
  EXPECT_LT(Seconds(returned_at - cancelled_at).count(), sanitized ? 20 : 2);
  if (result.has_plan()) {
    EXPECT_TRUE(simulate(trace, result.plan).valid());
  }
}

TEST(Cancelled, ACurveEndsSoon) {
  std::atomic<bool> cancel = false;
  CurveOptions options;
  options.cancel = &cancel;
  options.time_limit = 600s;
  const Trace trace = random_graph(11, 300);
  std::thread canceller([&] {
    std::this_thread::sleep_for(300ms);
    cancel = true;
  });
  const auto start = std::chrono::steady_clock::now();
  const Curve curve = make_curve(trace, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  canceller.join();
  EXPECT_TRUE(curve.cancelled);
  EXPECT_LT(took, 20s);  // far from 600, whatever the sanitizer
}

}  // namespace
}  // namespace reprise
