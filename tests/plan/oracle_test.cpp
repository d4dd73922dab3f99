// Planning against two oracles: exhaustive search, which looks at every plan of a small trace, and an integer program.
#include <gtest/gtest.h>

#include <iostream>
#include <limits>

#include "plan/bounds/highs.h"
#include "reprise/plan/planner.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/files.h"
#include "support/cases.h"
#include "support/exhaustive.h"
#include "support/integer_program.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::cheapest_plan;
using testing::lowest_plan;
using testing::read_aloud;
using testing::small_case;
using testing::SmallTrace;

// ---- exhaustive search itself --------------------------------------------------------------------------------------

TEST(Exhaustive, KnowsTheOptimumOfAChainByHand) {
  SmallTrace small;  // three layers and their backward; every state is one byte
  small.run({}, {1}, 1);
  small.run({0}, {1}, 1);
  small.run({1}, {1}, 1);
  small.event({2});
  small.event({1});
  small.event({0});
  EXPECT_EQ(lowest_plan(small.trace).peak, 2);
  EXPECT_EQ(cheapest_plan(small.trace, 3)->cost, 3);
  EXPECT_EQ(cheapest_plan(small.trace, 2)->cost, 4);  // keep 0, evict 1, replay it for its event
  EXPECT_FALSE(cheapest_plan(small.trace, 1));
}

TEST(Exhaustive, UsesATierWhereThatIsCheaper) {
  SmallTrace small;
  small.run({}, {4}, 10);
  small.run({}, {4}, 1);
  small.event({0});
  Tier disk;
  disk.name = "disk";
  disk.in_budget = false;
  disk.entries = {{0, 4, 2, 3}};
  small.trace.tiers = {disk};
  const auto cheapest = cheapest_plan(small.trace, 4);
  ASSERT_TRUE(cheapest);
  EXPECT_EQ(cheapest->cost, 11 + 2 + 3);
}

TEST(Exhaustive, HasWitnessesThatTheInterpreterAccepts) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(30); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = small_case(kind, seed);
      check(trace);
      const auto lowest = lowest_plan(trace);
      const Simulation low = simulate(trace, lowest.plan);
      ASSERT_TRUE(low.valid()) << low.broken->sentence << "\n" << read_aloud(lowest.plan);
      ASSERT_EQ(low.peak, lowest.peak);
      const Bytes most = keep_everything(trace).budget;
      double previous = std::numeric_limits<double>::infinity();  // a larger budget never costs more
      for (const Bytes budget : {lowest.peak, (lowest.peak + most) / 2, most}) {
        const auto cheapest = cheapest_plan(trace, budget);
        ASSERT_TRUE(cheapest) << budget;
        const Simulation result = simulate(trace, cheapest->plan);
        ASSERT_TRUE(result.valid()) << result.broken->sentence << "\n" << read_aloud(cheapest->plan);
        ASSERT_DOUBLE_EQ(result.cost, cheapest->cost);
        ASSERT_LE(cheapest->cost, previous);
        previous = cheapest->cost;
      }
      ASSERT_EQ(previous, trace.total_cost()) << "at the peak of keeping everything nothing needs to be replayed";
      ASSERT_FALSE(cheapest_plan(trace, lowest.peak - 1));
    }
  }
}

// ---- best against exhaustive search --------------------------------------------------------------------------------

struct Tally {
  int compared = 0, equal = 0, missed = 0;
  std::string differences;
};

void compare(const Trace& trace, Bytes budget, const std::string& what, Tally& tally) {
  SCOPED_TRACE(what + ", budget " + std::to_string(budget));
  PlanOptions options;
  options.budget = budget;
  options.moves = 20'000;
  const PlanResult result = make_plan(trace, options);
  const auto cheapest = cheapest_plan(trace, budget);
  ++tally.compared;
  if (!cheapest) {
    ASSERT_FALSE(result.has_plan()) << "there is no such plan: " << read_aloud(result.plan);
    ASSERT_TRUE(result.smallest_feasible);
    ASSERT_GT(*result.smallest_feasible, budget);
    ++tally.equal;
    return;
  }
  const double tolerance = 1e-6 * std::max(1.0, cheapest->cost);
  ASSERT_LE(result.lower_bound, cheapest->cost + tolerance) << read_aloud(cheapest->plan) << "\n" << to_json(trace);
  if (!result.has_plan()) {
    ++tally.missed;
    tally.differences +=
        what + ", budget " + std::to_string(budget) + ": none found, " + read_aloud(cheapest->plan) + "\n";
    return;
  }
  const double cost = result.simulation.cost;
  ASSERT_GE(cost, cheapest->cost - tolerance) << "cheaper than the cheapest: " << read_aloud(result.plan);
  if (result.status == PlanStatus::optimal) {
    ASSERT_LE(cost, cheapest->cost + tolerance) << "said to be optimal: " << read_aloud(result.plan);
  }
  if (cost <= cheapest->cost + tolerance) {
    ++tally.equal;
  } else {
    tally.differences += what + ", budget " + std::to_string(budget) + ": cost " + std::to_string(cost) + ", but " +
                         std::to_string(cheapest->cost) + " is possible: " + read_aloud(cheapest->plan) + "\n";
  }
}

Tally compare_with_best(CaseKind kind, std::uint64_t seeds) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFatalFailure(); ++seed) {
    const Trace trace = small_case(kind, seed);
    const Bytes lowest = lowest_plan(trace).peak, most = keep_everything(trace).budget;
    for (const Bytes budget : {lowest, lowest + (most - lowest) / 3, lowest + (most - lowest) * 2 / 3, lowest - 1}) {
      compare(trace, budget, std::string(name(kind)) + ", seed " + std::to_string(seed), tally);
    }
  }
  std::cout << "[          ] " << name(kind) << ": best is optimal in " << tally.equal << " of " << tally.compared
            << ", finds nothing in " << tally.missed << "\n";
  return tally;
}

TEST(BestAgainstExhaustive, IsOptimalOnEveryGraph) {
  const Tally tally = compare_with_best(CaseKind::graph, cases(60));
  EXPECT_EQ(tally.equal, tally.compared) << tally.differences;
}

TEST(BestAgainstExhaustive, IsOptimalOnEveryTrainingStep) {
  const Tally tally = compare_with_best(CaseKind::step, cases(60));
  EXPECT_EQ(tally.equal, tally.compared) << tally.differences;
}

TEST(BestAgainstExhaustive, IsOptimalOnEveryTimelineWithoutTiers) {
  const Tally tally = compare_with_best(CaseKind::timeline, cases(60));
  EXPECT_EQ(tally.equal, tally.compared) << tally.differences;
}

TEST(BestAgainstExhaustive, IsOptimalOnNearlyEveryTimelineWithTiers) {
  const Tally tally = compare_with_best(CaseKind::tiers, cases(60));
  EXPECT_GE(tally.equal, tally.compared * 99 / 100) << tally.differences;
}

// A tier of limited capacity serves a fixed selection of values (problem.h), which need not be the best one.
TEST(BestAgainstExhaustive, IsOptimalOnMostTimelinesWithLimitedTiers) {
  const Tally tally = compare_with_best(CaseKind::limited_tiers, cases(60));
  EXPECT_GE(tally.equal, tally.compared * 95 / 100) << tally.differences;
}

// Where the computation waits shows only in the plan, so the search does not see all of it.
TEST(BestAgainstExhaustive, IsOptimalOnMostTimelinesWithTiersThatOverlap) {
  const Tally tally = compare_with_best(CaseKind::overlapping_tiers, cases(60));
  EXPECT_GE(tally.equal, tally.compared * 95 / 100) << tally.differences;
}

// ---- the integer program -------------------------------------------------------------------------------------------

TEST(StagedProgram, AgreesWithExhaustiveSearchOnNearlyEveryGraph) {
  if (!solver_available()) GTEST_SKIP() << solver_problem();
  int compared = 0, equal = 0;
  for (std::uint64_t seed = 1; seed <= cases(25); ++seed) {
    const Trace trace = small_case(CaseKind::graph, 1000 + seed);
    const Bytes lowest = lowest_plan(trace).peak, most = keep_everything(trace).budget;
    for (const Bytes budget : {lowest, (lowest + most) / 2}) {
      SCOPED_TRACE("seed " + std::to_string(1000 + seed) + ", budget " + std::to_string(budget));
      const auto cheapest = cheapest_plan(trace, budget);
      ASSERT_TRUE(cheapest);
      const auto staged = testing::staged_optimum(trace, budget, 5);
      if (!staged.solved) continue;
      ++compared;
      if (staged.cost) ASSERT_GE(*staged.cost, cheapest->cost - 1e-6) << read_aloud(cheapest->plan);
      equal += staged.cost && *staged.cost <= cheapest->cost + 1e-6;
    }
  }
  std::cout << "[          ] the integer program and exhaustive search agree in " << equal << " of " << compared
            << "\n";
  EXPECT_GE(equal, compared * 9 / 10);
}

TEST(StagedProgram, IsNeverCheaperThanBestOnLargerGraphs) {
  if (!solver_available()) GTEST_SKIP() << solver_problem();
  int compared = 0, equal = 0;
  for (std::uint64_t seed = 1; seed <= cases(4); ++seed) {
    const Trace trace = testing::random_case(CaseKind::graph, 500 + seed, 12);
    PlanOptions options;
    options.moves = 20'000;
    options.budget = (3 * keep_everything(trace).budget + floor_of(trace).bytes) / 4;
    SCOPED_TRACE("seed " + std::to_string(500 + seed) + ", budget " + std::to_string(options.budget));
    const PlanResult ours = make_plan(trace, options);
    const auto staged = testing::staged_optimum(trace, options.budget, 3);
    if (!staged.solved || !staged.cost) continue;
    ASSERT_TRUE(ours.has_plan());
    ++compared;
    EXPECT_LE(ours.simulation.cost, *staged.cost + 1e-6);
    equal += *staged.cost <= ours.simulation.cost + 1e-6;
  }
  std::cout << "[          ] the integer program agrees with best in " << equal << " of " << compared << "\n";
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace reprise
