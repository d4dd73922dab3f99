// Transfers beside computation: gets that begin early and drops that wait, as far as a plan has room.
#include "torch/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reprise/plan/planner.h"
#include "reprise/simulate/simulate.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise::testing {
using namespace internal;
namespace {

// a is made, and backward needs it after many others; all cost 1, a transfer 2.
struct Long : SmallTrace {
  Id a = 0;
  Long() {
    run({}, {100});
    for (int i = 0; i < 8; ++i) run({}, {10});
    event({a});
    trace.tiers.push_back({"disk", std::nullopt, false, {{a, 100, 2, 2}}});
  }
  // Put and dropped at once, got right before it is needed; everything else is dropped at once.
  [[nodiscard]] Plan plan(Bytes budget) const {
    Plan plan{budget, trace.tiers, {Action::run(0), Action::put(a, 0), Action::drop(a)}};
    for (Id m = 1; m <= 8; ++m) {
      plan.actions.push_back(Action::run(m));
      plan.actions.push_back(Action::drop(m));
    }
    plan.actions.push_back(Action::get(a, 0));
    plan.actions.push_back(Action::run(9));
    return plan;
  }
};

std::size_t place(const Plan& plan, const Action& action) {
  return static_cast<std::size_t>(std::find(plan.actions.begin(), plan.actions.end(), action) - plan.actions.begin());
}

TEST(Overlap, BeginsAGetAsLongBeforeAsItCanUse) {
  // Room for a beside the others: the peak is that of a large one in the middle.
  Long wide;
  wide.trace.operators[4].workspace = 200;
  const Plan before = wide.plan(1000), after = with_overlap(wide.trace, before, 0);
  ASSERT_TRUE(simulate(wide.trace, after).valid());
  EXPECT_EQ(place(after, Action::get(0, 0)), place(after, Action::run(5)) - 1) << "four moments of one: twice its cost";
  EXPECT_GT(place(after, Action::drop(0)), place(after, Action::run(3)));
  EXPECT_LE(simulate(wide.trace, after).peak, simulate(wide.trace, before).peak);
}

TEST(Overlap, LeavesAPlanWithoutRoomAsItIs) {
  const Long made;
  const Plan plan = made.plan(1000);
  EXPECT_EQ(with_overlap(made.trace, plan, 0), plan) << "110 bytes at once would be a new peak";
}

TEST(Overlap, LeavesAPlanWithoutTransfersAsItIs) {
  const Long made;
  const Plan plan = keep_everything(made.trace);
  EXPECT_EQ(with_overlap(made.trace, plan, 0), plan);
  EXPECT_EQ(with_overlap(made.trace, plan, -1), plan);
}

TEST(Overlap, DoesNotGetWhatTheProgramStillHolds) {
  Long wide;
  wide.trace.operators[4].workspace = 300;
  wide.trace.values[0].held = Stretch{0, 7};
  const Plan before = wide.plan(1000);
  ASSERT_TRUE(simulate(wide.trace, before).valid());
  const Plan after = with_overlap(wide.trace, before, 0);
  EXPECT_TRUE(simulate(wide.trace, after).valid());
  EXPECT_GT(place(after, Action::get(0, 0)), place(after, Action::run(7)));
}

// Whatever the planner makes of random traces with a disk, what comes out is valid, costs the same and has no higher
// peak.
TEST(Overlap, KeepsCostAndPeakOfPlansOfRandomTraces) {
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Trace trace = random_trace(seed, {});
    trace.tiers.clear();
    Tier disk{"disk", std::nullopt, false, {}};
    for (Id v = 0; v < trace.value_count(); ++v) disk.entries.push_back({v, trace.values[v].bytes, 0.1, 0.1});
    trace.tiers.push_back(disk);
    PlanOptions options;
    options.budget = floor_of(trace).bytes;
    options.moves = 300;
    const PlanResult result = make_plan(trace, options);
    if (!result.has_plan()) continue;
    const Plan after = with_overlap(trace, result.plan, 0);
    const Simulation first = simulate(trace, result.plan), second = simulate(trace, after);
    ASSERT_TRUE(second.valid()) << "seed " << seed << ": " << second.broken->sentence;
    EXPECT_LE(second.peak, first.peak);
    EXPECT_NEAR(second.cost, first.cost, 1e-9 * (1 + first.cost));
    EXPECT_EQ(second.gets, first.gets);
    moved += after != result.plan;
  }
  EXPECT_GT(moved, 5) << "there was room somewhere";
}

}  // namespace
}  // namespace reprise::testing
