// Floors, and the smallest budget that works.
#include <gtest/gtest.h>

#include <iostream>

#include "reprise/plan/planner.h"
#include "reprise/plan/smallest.h"
#include "support/cases.h"
#include "support/exhaustive.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::lowest_plan;
using testing::random_case;
using testing::read_aloud;
using testing::small_case;
using testing::SmallTrace;

TEST(Floor, IsNeverAboveTheSmallestPeakThereIs) {
  for (const CaseKind kind : all_kinds()) {
    int reached = 0, tried = 0;
    for (std::uint64_t seed = 1; seed <= cases(150); ++seed, ++tried) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = small_case(kind, seed);
      const Blocker floor = floor_of(trace);
      const auto lowest = lowest_plan(trace);
      ASSERT_LE(floor.bytes, lowest.peak) << read_aloud(lowest.plan);
      ASSERT_TRUE(floor.proven);
      ASSERT_LE(floor.bytes, keep_everything(trace).budget);
      reached += floor.bytes == lowest.peak;
    }
    std::cout << "[          ] " << name(kind) << ": the floor can be reached in " << reached << " of " << tried
              << "\n";
  }
}

TEST(Floor, IsTheMomentThatNeedsMostByItself) {
  SmallTrace small;
  small.run({}, {3});
  small.run({0}, {4}, 1, 2);  // 3 + 4 + 2
  small.run({1}, {1});        // 4 + 1
  small.trace.moments[1].other = 5;
  const Blocker floor = floor_of(small.trace);
  EXPECT_EQ(floor.bytes, 14);
  EXPECT_EQ(floor.moment, 1);
  EXPECT_EQ(floor.values, (std::vector<Id>{1, 0})) << "largest first";
}

TEST(Floor, CountsWhatCannotBeHadAgain) {
  SmallTrace small;
  small.outside(7);  // needed at the end
  small.run({}, {3});
  small.event({0});
  EXPECT_EQ(floor_of(small.trace).bytes, 10);
  small.trace.values[0].held = Stretch{1, 1};  // arrives only then
  EXPECT_EQ(floor_of(small.trace).bytes, 7);
}

TEST(SmallestPlan, FitsItsBudgetAndIsNeverBelowWhatIsPossible) {
  for (const CaseKind kind : all_kinds()) {
    int lowest_found = 0, tried = 0;
    for (std::uint64_t seed = 1; seed <= cases(25); ++seed, ++tried) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = small_case(kind, 700 + seed);
      PlanOptions options;
      options.moves = 5'000;
      const Plan plan = smallest_plan(trace, options);
      const Simulation simulation = simulate(trace, plan);
      ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
      ASSERT_EQ(simulation.peak, plan.budget);
      ASSERT_LE(plan.budget, keep_everything(trace).budget);
      const Bytes lowest = lowest_plan(trace).peak;
      ASSERT_GE(plan.budget, lowest);
      lowest_found += plan.budget == lowest;
    }
    std::cout << "[          ] " << name(kind) << ": the smallest budget is found in " << lowest_found << " of "
              << tried << "\n";
    EXPECT_GE(lowest_found, tried * 9 / 10);
  }
}

// A budget that is reported to work can be planned for: always where exhaustive search could, nearly always elsewhere.
TEST(SmallestFeasible, IsAcceptedAsABudget) {
  int tried = 0, accepted = 0;
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(20); ++seed) {
      for (const bool small : {true, false}) {
        SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed) + (small ? ", small" : ""));
        const Trace trace = small ? small_case(kind, 800 + seed) : random_case(kind, 800 + seed, 18);
        PlanOptions options;
        options.moves = 5'000;
        options.bounds = false;
        options.budget = floor_of(trace).bytes - 1;
        const PlanResult refused = make_plan(trace, options);
        ASSERT_FALSE(refused.has_plan());
        ASSERT_TRUE(refused.smallest_feasible);
        ASSERT_TRUE(refused.blocker);
        ASSERT_GE(*refused.smallest_feasible, refused.floor);
        options.budget = *refused.smallest_feasible;
        const PlanResult again = make_plan(trace, options);
        if (small)
          ASSERT_TRUE(again.has_plan()) << "budget " << options.budget << ", then " << *again.smallest_feasible;
        ++tried;
        accepted += again.has_plan();
      }
    }
  }
  std::cout << "[          ] accepted in " << accepted << " of " << tried << "\n";
  EXPECT_GE(accepted, tried * 9 / 10);
}

TEST(KeepEverything, RunsEverythingOnceAndEvictsWhatIsNotNeededAnyMore) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(50); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = random_case(kind, seed, 15);
      const Plan plan = keep_everything(trace);
      const Simulation simulation = simulate(trace, plan);
      ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
      ASSERT_EQ(simulation.peak, plan.budget);
      ASSERT_EQ(simulation.replays + simulation.puts + simulation.gets, 0U);
      ASSERT_DOUBLE_EQ(simulation.cost, trace.total_cost());
    }
  }
  SmallTrace small;
  small.run({}, {5});
  small.run({}, {3});  // not needed: gone at once
  small.run({0}, {2});
  EXPECT_EQ(keep_everything(small.trace).budget, 8);
  EXPECT_EQ(keep_everything(small.trace).actions,
            (std::vector<Action>{Action::run(0), Action::run(1), Action::drop(1), Action::run(2), Action::drop(0),
                                 Action::drop(2)}));
}

}  // namespace
}  // namespace reprise
