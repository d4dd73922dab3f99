// Transfers beside computation: puts and gets that begin early and drops that wait, as far as a plan has room.
#include "plan/early_transfers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reprise/plan/planner.h"
#include "reprise/simulate/simulate.h"
#include "support/cases.h"
#include "support/small_trace.h"

namespace reprise::early_transfers_test {
using namespace internal;
using namespace testing;
namespace {

// a is made, and backward needs it after many others; all cost 1, a transfer takes 2.
struct Long : SmallTrace {
  Id a = 0;
  Long() {
    run({}, {100});
    for (int i = 0; i < 8; ++i) run({}, {10});
    event({a});
    trace.tiers.push_back({"disk", std::nullopt, false, {{a, 100, 0, 0, 2, 2}}});
  }
  // Put and dropped after this moment, got right before it is needed; everything else is dropped at once.
  [[nodiscard]] Plan plan(Id after = 0) const {
    Plan plan{1000, trace.tiers, {}};
    for (Id m = 0; m <= 8; ++m) {
      plan.actions.push_back(Action::run(m));
      if (m > 0) plan.actions.push_back(Action::drop(m));
      if (m != after) continue;
      plan.actions.push_back(Action::put(a, 0));
      plan.actions.push_back(Action::drop(a));
    }
    plan.actions.push_back(Action::get(a, 0));
    plan.actions.push_back(Action::run(9));
    return plan;
  }
};

std::size_t place(const Plan& plan, const Action& action) {
  return static_cast<std::size_t>(std::find(plan.actions.begin(), plan.actions.end(), action) - plan.actions.begin());
}

TEST(EarlyTransfers, BeginsAGetEarlyAndDropsLateWhereThereIsRoom) {
  Long wide;  // the peak is that of a large one in the middle: there is room for a beside the others
  wide.trace.operators[4].workspace = 200;
  const Plan before = wide.plan(), after = with_early_transfers(wide.trace, before);
  const Simulation simulation = simulate(wide.trace, after);
  ASSERT_TRUE(simulation.valid());
  EXPECT_EQ(simulate(wide.trace, before).waited, 4);
  EXPECT_EQ(simulation.waited, 0);
  EXPECT_EQ(place(after, Action::get(0, 0)), place(after, Action::run(6)) - 1) << "half as long again as it takes";
  EXPECT_GT(place(after, Action::drop(0)), place(after, Action::run(2)));
  EXPECT_LE(simulation.peak, simulate(wide.trace, before).peak);
}

TEST(EarlyTransfers, BeginsAPutEarlyWhichTakesNoRoom) {
  const Long made;
  const Plan before = made.plan(7), after = with_early_transfers(made.trace, before);
  ASSERT_TRUE(simulate(made.trace, after).valid());
  EXPECT_EQ(place(after, Action::put(0, 0)), place(after, Action::run(5)) - 1);
  EXPECT_EQ(place(after, Action::drop(0)), place(after, Action::run(7)) + 2) << "right after, as it was";
  EXPECT_EQ(simulate(made.trace, after).waited, 1) << "for the get, which has room beside moment 8 only";
}

TEST(EarlyTransfers, LeavesAPlanWithoutRoomAsItIs) {
  const Long made;
  const Plan plan = made.plan();
  EXPECT_EQ(with_early_transfers(made.trace, plan), plan) << "110 bytes at once would be a new peak";
}

TEST(EarlyTransfers, LeavesAPlanWithoutTransfersOfTheirOwnTimeAsItIs) {
  Long made;
  const Plan keep = keep_everything(made.trace);
  EXPECT_EQ(with_early_transfers(made.trace, keep), keep);
  made.trace.tiers[0].entries[0] = {0, 100, 2, 2};
  made.trace.operators[4].workspace = 200;
  const Plan plan = made.plan();
  EXPECT_EQ(with_early_transfers(made.trace, plan), plan) << "who pays himself has nothing from beginning early";
}

TEST(EarlyTransfers, KeepsToTheCapacityOfATier) {
  Long made;
  made.trace.tiers[0].capacity = 109;
  made.trace.tiers[0].entries.push_back({1, 10, 0, 0, 0, 0});
  Plan plan = made.plan(7);
  plan.tiers = made.trace.tiers;
  // Value 1 is there until after moment 5, and 110 bytes do not fit.
  plan.actions.erase(plan.actions.begin() + static_cast<std::ptrdiff_t>(place(plan, Action::drop(1))));
  const auto insert = [&](const Action& before, std::vector<Action> actions) {
    plan.actions.insert(plan.actions.begin() + static_cast<std::ptrdiff_t>(place(plan, before)), actions.begin(),
                        actions.end());
  };
  insert(Action::run(2), {Action::put(1, 0), Action::drop(1)});
  insert(Action::run(6), {Action::get(1, 0), Action::drop(1)});
  ASSERT_TRUE(simulate(made.trace, plan).valid());
  const Plan after = with_early_transfers(made.trace, plan);
  ASSERT_TRUE(simulate(made.trace, after).valid());
  EXPECT_GT(place(after, Action::put(0, 0)), place(after, Action::get(1, 0)));
  EXPECT_LT(place(after, Action::put(0, 0)), place(after, Action::run(7)));
}

TEST(EarlyTransfers, DoesNotGetWhatTheProgramStillHolds) {
  Long wide;
  wide.trace.operators[4].workspace = 300;
  wide.trace.values[0].held = Stretch{0, 7};
  const Plan before = wide.plan();
  ASSERT_TRUE(simulate(wide.trace, before).valid());
  const Plan after = with_early_transfers(wide.trace, before);
  EXPECT_TRUE(simulate(wide.trace, after).valid());
  EXPECT_GT(place(after, Action::get(0, 0)), place(after, Action::run(7)));
}

PlanResult planned(const Trace& trace, Bytes budget) {
  PlanOptions options;
  options.budget = budget;
  options.moves = 2000;
  options.bounds = false;
  return make_plan(trace, options);
}

Trace with_entries_in_time(Trace trace) {  // as if nothing happened beside
  for (Tier& tier : trace.tiers) {
    for (TierEntry& entry : tier.entries) {
      entry.put_cost += std::exchange(entry.put_time, 0);
      entry.get_cost += std::exchange(entry.get_time, 0);
    }
  }
  return trace;
}

// Whatever plan there is for a tier that takes time beside the computation, moving its transfers never makes it worse.
TEST(EarlyTransfers, NeverRaisesCostOrPeak) {
  int moved = 0, cheaper = 0;
  for (std::uint64_t seed = 1; seed <= cases(60); ++seed) {
    const Trace trace = random_case(CaseKind::overlapping_tiers, seed, 20);
    const PlanResult result = planned(with_entries_in_time(trace), floor_of(trace).bytes);
    if (!result.has_plan()) continue;
    Plan before = result.plan;
    before.tiers = trace.tiers;
    const Plan after = with_early_transfers(trace, before);
    const Simulation first = simulate(trace, before), second = simulate(trace, after);
    ASSERT_TRUE(second.valid()) << "seed " << seed << ": " << second.broken->sentence;
    EXPECT_LE(second.peak, first.peak);
    EXPECT_LE(second.cost, first.cost);
    EXPECT_EQ(second.gets, first.gets);
    moved += after != before;
    cheaper += second.cost < first.cost;
  }
  EXPECT_GT(moved, 10);
  EXPECT_GT(cheaper, 10);
}

TEST(PlansWithTiersThatOverlap, CostNoMoreThanThoseWithoutThem) {
  int cheaper = 0;
  for (std::uint64_t seed = 1; seed <= cases(25); ++seed) {
    const Trace trace = random_case(CaseKind::overlapping_tiers, 100 + seed, 30);
    Trace without = trace;
    without.tiers.pop_back();
    const Bytes floor = floor_of(without).bytes;
    const Bytes budget = floor + (keep_everything(trace).budget - floor) / 4;
    const PlanResult with = planned(trace, budget), plain = planned(without, budget);
    if (!plain.has_plan()) continue;
    ASSERT_TRUE(with.has_plan()) << seed;
    EXPECT_LE(with.simulation.cost, plain.simulation.cost) << seed;
    cheaper += with.simulation.cost < plain.simulation.cost;
  }
  EXPECT_GT(cheaper, 2);
}

// A tier of which most is hidden is worth it where the same transfers would not be if the computation did them.
TEST(PlansWithTiersThatOverlap, UseWhatIsHiddenBehindTheComputation) {
  SmallTrace small;
  for (int i = 0; i < 6; ++i) small.run(i == 0 ? std::vector<Id>{} : std::vector<Id>{i - 1}, {10}, 10);
  for (int i = 5; i >= 0; --i) small.event({i}, 20);
  Tier disk{"disk", std::nullopt, false, {}};
  for (Id v = 0; v < 6; ++v) disk.entries.push_back({v, 10, 0, 0, 9, 9});
  small.trace.tiers = {disk};
  const Bytes budget = 40;
  const PlanResult hidden = planned(small.trace, budget);
  const PlanResult paid = planned(with_entries_in_time(small.trace), budget);
  ASSERT_TRUE(hidden.has_plan() && paid.has_plan());
  EXPECT_EQ(hidden.simulation.cost, small.trace.total_cost()) << read_aloud(hidden.plan);
  EXPECT_GT(hidden.simulation.gets, 0U);
  EXPECT_GT(paid.simulation.cost, small.trace.total_cost());
}

}  // namespace
}  // namespace reprise::early_transfers_test
