// Lower bounds: never above what the cheapest plan costs.
#include "plan/bounds/bound.h"

#include <gtest/gtest.h>

#include <iostream>

#include "reprise/plan/planner.h"
#include "reprise/trace/files.h"
#include "support/cases.h"
#include "support/exhaustive.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::cheapest_plan;
using testing::lowest_plan;
using testing::Random;
using testing::read_aloud;
using testing::small_case;
using testing::SmallTrace;

constexpr double tolerance = 1e-6;
// Whatever goes into a tier of limited capacity, the bound holds.
constexpr auto serve_all = Problem::LimitedTiers::serve_all;

// No pivots, some, and every moment.
std::vector<std::vector<Id>> some_pivots(Random& random, Id moments) {
  std::vector<std::vector<Id>> lists(4);
  for (Id m = 0; m < moments; ++m) {
    if (random.chance(0.2)) lists[1].push_back(m);
    if (random.chance(0.5)) lists[2].push_back(m);
    lists[3].push_back(m);
  }
  return lists;
}

TEST(Bounds, AreNeverAboveTheCheapestPlan) {
  if (!solver_available()) GTEST_SKIP() << solver_problem();
  for (const CaseKind kind : all_kinds()) {
    int programs = 0, exact = 0;
    for (std::uint64_t seed = 1; seed <= cases(30); ++seed) {
      Random random(seed);
      const Trace trace = small_case(kind, 100 + seed);
      const Bytes lowest = lowest_plan(trace).peak, most = keep_everything(trace).budget;
      if (lowest == most) continue;
      const Bytes budget = lowest + (most - lowest) * random.between(0, 90) / 100;
      const auto cheapest = cheapest_plan(trace, budget);
      ASSERT_TRUE(cheapest);
      const Timeline timeline(trace);
      const Problem problem(trace, timeline, budget, serve_all, 0);
      const auto uses = first_uses(problem);
      for (const auto& pivots : some_pivots(random, problem.moments)) {
        const BoundProgram program(problem, uses, pivots);
        for (const bool integers : {false, true}) {
          SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(100 + seed) + ", budget " +
                       std::to_string(budget) + ", pivots " + std::to_string(pivots.size()) +
                       (integers ? ", integers" : ""));
          SolveOptions options;
          options.integers = integers;
          const auto result = program.solve(options);
          ASSERT_FALSE(result.infeasible && !integers) << read_aloud(cheapest->plan) << "\n" << to_json(trace);
          if (!result.cost) continue;
          ++programs;
          ASSERT_LE(*result.cost, cheapest->cost * (1 + tolerance)) << read_aloud(cheapest->plan) << "\n"
                                                                    << to_json(trace);
          ASSERT_GE(*result.cost, problem.plain_cost * (1 - tolerance));
          exact += *result.cost >= cheapest->cost * (1 - tolerance);
        }
      }
    }
    std::cout << "[          ] " << name(kind) << ": " << exact << " of " << programs << " bounds are exact\n";
    if (kind != CaseKind::overlapping_tiers) EXPECT_GT(exact, 0);  // what is waited for is in no bound
  }
}

TEST(Bounds, WithoutASolverAreNeverAboveTheCheapestPlanEither) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(100); ++seed) {
      const Trace trace = small_case(kind, seed);
      const Bytes lowest = lowest_plan(trace).peak, most = keep_everything(trace).budget;
      for (const Bytes budget : {lowest, (lowest + most) / 2}) {
        SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed) + ", budget " + std::to_string(budget));
        const Timeline timeline(trace);
        const Problem problem(trace, timeline, budget, serve_all, 0);
        const auto cheapest = cheapest_plan(trace, budget);
        ASSERT_TRUE(cheapest);
        ASSERT_LE(quick_bound(problem, first_uses(problem)), cheapest->cost * (1 + tolerance))
            << read_aloud(cheapest->plan) << "\n"
            << to_json(trace);
      }
    }
  }
}

// A value of 4 bytes lies unused while something else needs the room; it costs 7 to make again.
TEST(Bounds, AreExactWhereOneValueHasToGo) {
  SmallTrace small;
  small.run({}, {4}, 7);
  small.run({}, {8}, 1);
  small.event({0}, 1);
  const Timeline timeline(small.trace);
  const Problem tight(small.trace, timeline, 8), wide(small.trace, timeline, 12);
  EXPECT_NEAR(quick_bound(tight, first_uses(tight)), 16, 1e-6);
  EXPECT_EQ(quick_bound(wide, first_uses(wide)), 9);
  if (!solver_available()) GTEST_SKIP() << solver_problem();
  for (const bool integers : {false, true}) {
    SolveOptions options;
    options.integers = integers;
    const auto uses = first_uses(tight);
    const auto result = BoundProgram(tight, uses, {}).solve(options);
    ASSERT_TRUE(result.cost);
    EXPECT_NEAR(*result.cost, 16, 1e-4);
    ASSERT_TRUE(result.absent);
    EXPECT_NEAR(result.absent->absent[0][0], 1, 1e-5) << "the value has to be absent before its only use";
    const auto uses_of_wide = first_uses(wide);
    EXPECT_NEAR(BoundProgram(wide, uses_of_wide, {}).solve(options).cost.value_or(0), 9, 1e-4);
  }
}

// Of two values that fill a limited tier together, either may be the one that goes there.
TEST(Bounds, DoNotRelyOnWhichValuesALimitedTierIsGivenTo) {
  SmallTrace small;
  small.outside(2);
  small.outside(1);
  small.run({}, {}, 1, 9);
  small.event({0, 1});
  Tier disk;
  disk.name = "disk";
  disk.capacity = 13;
  disk.in_budget = false;
  disk.entries = {{0, 12, 0, 1}, {1, 8, 0, 0}};
  small.trace.tiers = {disk};
  check(small.trace);
  const auto lowest = lowest_plan(small.trace);
  EXPECT_EQ(lowest.peak, 10);
  EXPECT_LE(floor_of(small.trace).bytes, lowest.peak);
  for (Bytes budget = lowest.peak; budget <= 12; ++budget) {
    const auto cheapest = cheapest_plan(small.trace, budget);
    ASSERT_TRUE(cheapest);
    const Timeline timeline(small.trace);
    const Problem problem(small.trace, timeline, budget, serve_all, 0);
    const auto uses = first_uses(problem);
    EXPECT_LE(quick_bound(problem, uses), cheapest->cost + tolerance);
    if (!solver_available()) continue;
    const auto result = BoundProgram(problem, uses, {}).solve({});
    EXPECT_FALSE(result.infeasible) << budget;
    EXPECT_LE(result.cost.value_or(0), cheapest->cost + tolerance);
  }
}

}  // namespace
}  // namespace reprise
