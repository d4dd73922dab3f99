// How `best` behaves: the same plan again, cancelled, watched, without HiGHS, and on traces at the edge.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "plan/bounds/highs.h"
#include "reprise/plan/planner.h"
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
using testing::random_case;
using testing::SmallTrace;
using Seconds = std::chrono::duration<double>;

Bytes halfway(const Trace& trace) {
  return (floor_of(trace).bytes + keep_everything(trace).budget) / 2;
}

PlanOptions options_for(Bytes budget, std::uint64_t moves) {
  PlanOptions options;
  options.budget = budget;
  options.moves = moves;
  return options;
}

void expect_valid(const Trace& trace, const PlanResult& result) {
  ASSERT_TRUE(result.has_plan());
  const Simulation simulation = simulate(trace, result.plan);
  ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
  ASSERT_LE(simulation.peak, result.budget);
}

// ---- with moves instead of a clock ---------------------------------------------------------------------------------

TEST(BestByMoves, GivesTheSamePlanForTheSameSeed) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(3); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = random_case(kind, 20 + seed, 22);
      PlanOptions options = options_for(halfway(trace), 4'000);
      options.seed = seed;
      const PlanResult one = make_plan(trace, options), two = make_plan(trace, options);
      ASSERT_EQ(one.status, two.status);
      ASSERT_EQ(one.plan, two.plan);
      ASSERT_EQ(one.lower_bound, two.lower_bound);
      ASSERT_EQ(one.moves, two.moves);
      ASSERT_EQ(one.smallest_feasible, two.smallest_feasible);
    }
  }
}

TEST(BestByMoves, MayGiveOtherPlansForOtherSeeds) {
  const Trace trace = testing::random_graph(3, 150);
  PlanOptions options = options_for(halfway(trace), 3'000);
  options.bounds = false;
  int different = 0;
  const Plan first = make_plan(trace, options).plan;
  ASSERT_FALSE(first.actions.empty());
  for (options.seed = 2; options.seed < 8; ++options.seed) different += make_plan(trace, options).plan != first;
  EXPECT_GT(different, 0);
}

TEST(BestByMoves, NeverCostsMoreWithMoreMoves) {
  const Trace trace = testing::random_graph(11, 40);
  double last = std::numeric_limits<double>::infinity();
  for (const std::uint64_t moves : {2'000, 20'000, 100'000}) {
    const PlanResult result = make_plan(trace, options_for(halfway(trace), moves));
    expect_valid(trace, result);
    EXPECT_LE(result.simulation.cost, last * 1.02) << moves << " moves";  // luck is allowed a little
    last = std::min(last, result.simulation.cost);
  }
}

TEST(BestByMoves, TellsHowManyItMade) {
  const Trace trace = testing::random_graph(6, 60);
  PlanOptions options = options_for(halfway(trace), 5'000);
  options.bounds = false;
  const PlanResult result = make_plan(trace, options);
  EXPECT_GT(result.moves, 0U);
  EXPECT_LE(result.moves, 5'200U);
  options.moves = 0;
  EXPECT_LE(make_plan(trace, options).moves, 200U) << "no moves: only what takes a moment";
}

// ---- memory --------------------------------------------------------------------------------------------------------

TEST(BestWithLittleMemoryForBounds, MakesAPlanAndSaysThatItsBoundIsWeaker) {
  if (!solver_available()) GTEST_SKIP() << solver_problem();
  const Trace trace = testing::random_graph(11, 40);
  PlanOptions options = options_for(halfway(trace), 3'000);
  const PlanResult with_bounds = make_plan(trace, options);
  options.bounds_memory = 0;
  const PlanResult without = make_plan(trace, options);
  expect_valid(trace, without);
  EXPECT_LT(without.lower_bound, with_bounds.lower_bound);
  ASSERT_EQ(without.notes.size(), 1U);
  EXPECT_NE(without.notes[0].find("memory"), std::string::npos) << without.notes[0];
  options.bounds_memory = Bytes{1} << 30;
  const PlanResult with_enough = make_plan(trace, options);
  EXPECT_EQ(with_enough.lower_bound, with_bounds.lower_bound);
  EXPECT_EQ(with_enough.plan, with_bounds.plan);
}

// ---- cancelling and progress --------------------------------------------------------------------------------------

TEST(BestCancelled, BeforeItStartsStillReturnsAnHonestResult) {
  const std::atomic<bool> cancel{true};
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(5); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = random_case(kind, seed, 30);
      for (const Bytes budget : {halfway(trace), keep_everything(trace).budget, floor_of(trace).bytes - 1}) {
        PlanOptions options;
        options.budget = budget;
        options.cancel = &cancel;
        const PlanResult result = make_plan(trace, options);
        EXPECT_TRUE(result.cancelled);
        if (result.has_plan())
          expect_valid(trace, result);
        else
          EXPECT_TRUE(result.smallest_feasible);
      }
    }
  }
}

TEST(BestProgress, IsReportedWithNumbersThatMakeSense) {
  const Trace trace = testing::random_graph(9, 50);
  for (const bool by_moves : {true, false}) {
    PlanOptions options;
    options.budget = halfway(trace);
    if (by_moves) options.moves = 20'000;
    options.time_limit = Seconds(0.5);
    int calls = 0;
    PlanProgress last;
    options.progress = [&](const PlanProgress& now) {
      ++calls;
      EXPECT_GE(now.share_done, last.share_done);
      EXPECT_LE(now.share_done, 1);
      EXPECT_GE(now.moves, last.moves);
      EXPECT_GE(now.seconds, last.seconds);
      if (last.cost_ratio) EXPECT_LE(now.cost_ratio.value_or(1e9), *last.cost_ratio * (1 + 1e-12));
      if (last.lower_bound) EXPECT_GE(now.lower_bound.value_or(0), *last.lower_bound);
      if (now.cost_ratio && now.lower_bound) EXPECT_GE(*now.cost_ratio, *now.lower_bound * (1 - 1e-6));
      if (now.lower_bound) EXPECT_GE(*now.lower_bound, 1 - 1e-9);
      last = now;
    };
    const PlanResult result = make_plan(trace, options);
    EXPECT_GT(calls, 0);
    if (result.has_plan() && last.cost_ratio) EXPECT_LE(result.cost_ratio(), *last.cost_ratio * (1 + 1e-12));
  }
}

// ---- without HiGHS -------------------------------------------------------------------------------------------------

using BestWithoutHighsDeathTest = ::testing::Test;  // gtest's word for a test in a process of its own

[[noreturn]] void plan_without_highs() {
  setenv("REPRISE_HIGHS", "/nowhere/libhighs.so", 1);
  int wrong = 0;
  const auto expect = [&wrong](bool holds, const char* what) {
    if (!holds) std::cerr << "not so: " << what << "\n", ++wrong;
  };
  expect(!solver_available(), "there is no solver");
  expect(solver_problem().find("/nowhere/libhighs.so") != std::string::npos, "the problem names the file");
  const Trace trace = testing::random_training_step(9, 12);
  for (const char* planner : {"best", "lru"}) {
    PlanOptions options;
    options.planner = planner;
    options.budget = (floor_of(trace).bytes + 3 * keep_everything(trace).budget) / 4;
    options.moves = 5'000;
    const PlanResult result = make_plan(trace, options);
    expect(result.has_plan(), "there is a plan");
    expect(simulate(trace, result.plan).valid(), "the plan is valid");
    expect(result.lower_bound >= result.plain_cost, "there is a bound");
    bool said = result.status == PlanStatus::optimal;
    for (const std::string& note : result.notes) said = said || note.find("HiGHS") != std::string::npos;
    expect(said, "the notes say that HiGHS is missing");
  }
  std::_Exit(wrong == 0 ? 0 : 1);
}

TEST(BestWithoutHighsDeathTest, PlansAllTheSameAndSaysSo) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";  // starts afresh: here HiGHS may be loaded already
  EXPECT_EXIT(plan_without_highs(), ::testing::ExitedWithCode(0), "");
}

TEST(Best, SaysWhenBoundsAreSwitchedOff) {
  const Trace trace = testing::random_graph(9, 40);
  PlanOptions options = options_for(halfway(trace), 1'000);
  options.bounds = false;
  const PlanResult result = make_plan(trace, options);
  bool said = false;
  for (const std::string& note : result.notes) said = said || note.find("switched off") != std::string::npos;
  EXPECT_TRUE(said || result.status == PlanStatus::optimal);
}

// ---- traces at the edge --------------------------------------------------------------------------------------------

TEST(BestAtTheEdge, OfATraceWithoutMoments) {
  const PlanResult result = make_plan(Trace{}, options_for(0, 100));
  EXPECT_EQ(result.status, PlanStatus::optimal);
  EXPECT_TRUE(result.plan.actions.empty());
  EXPECT_EQ(result.cost_ratio(), 1);
  EXPECT_EQ(result.gap(), 0);
  Trace only_values;
  only_values.values.resize(2);
  only_values.values[0].bytes = 5;
  EXPECT_TRUE(make_plan(only_values, options_for(0, 100)).has_plan());
}

TEST(BestAtTheEdge, OfASingleMoment) {
  SmallTrace small;
  small.outside(2);
  small.run({0}, {3}, 4, 1);
  EXPECT_EQ(make_plan(small.trace, options_for(6, 100)).status, PlanStatus::optimal);
  const PlanResult refused = make_plan(small.trace, options_for(5, 100));
  EXPECT_EQ(refused.status, PlanStatus::infeasible);
  EXPECT_EQ(refused.smallest_feasible, 6);
}

TEST(BestAtTheEdge, OfValuesWithoutBytesAndABudgetOfZero) {
  SmallTrace small;
  small.run({}, {0});
  small.run({0}, {0});
  small.event({0, 1});
  const PlanResult result = make_plan(small.trace, options_for(0, 1'000));
  EXPECT_EQ(result.status, PlanStatus::optimal);
  EXPECT_EQ(result.simulation.peak, 0);
  small.trace.values[0].bytes = 1;
  EXPECT_EQ(make_plan(small.trace, options_for(0, 1'000)).status, PlanStatus::infeasible);
  EXPECT_EQ(make_plan(small.trace, options_for(-5, 1'000)).status, PlanStatus::infeasible);
}

TEST(BestAtTheEdge, OfTracesThatCostNothing) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(10); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      Trace trace = testing::small_case(kind, seed);
      for (Operator& op : trace.operators) op.cost = 0;
      for (Moment& moment : trace.moments) moment.cost = 0;
      for (Tier& tier : trace.tiers) {
        for (TierEntry& entry : tier.entries) entry = {entry.value, entry.bytes, 0, 0};
      }
      const Bytes budget = testing::lowest_plan(trace).peak;
      const PlanResult result = make_plan(trace, options_for(budget, 20'000));
      if (kind < CaseKind::limited_tiers) ASSERT_TRUE(result.has_plan()) << budget;
      if (result.has_plan()) EXPECT_EQ(result.status, PlanStatus::optimal);
    }
  }
}

TEST(BestAtTheEdge, OfTracesThatAreAllEvents) {
  testing::RandomTraceOptions shape;
  shape.events = 1;
  shape.outside = 0.6;
  for (std::uint64_t seed = 1; seed <= cases(30); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = testing::random_trace(seed, shape);
    for (const Bytes budget : {floor_of(trace).bytes, halfway(trace), keep_everything(trace).budget}) {
      const PlanResult result = make_plan(trace, options_for(budget, 2'000));
      if (result.has_plan()) expect_valid(trace, result);
      ASSERT_TRUE(result.has_plan() || *result.smallest_feasible > budget);
    }
  }
}

// Bytes close to the largest there may be: sums of them still have to be formed without overflow (see UBSan).
TEST(BestAtTheEdge, OfBytesCloseToTheLargest) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(4); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      Trace trace = random_case(kind, seed, 10);
      Bytes sum = 1;
      const auto each_amount = [&](auto change) {
        for (Operator& op : trace.operators) change(op.workspace);
        for (Value& value : trace.values) change(value.bytes);
        for (Moment& moment : trace.moments) change(moment.other);
        for (Tier& tier : trace.tiers) {
          for (TierEntry& entry : tier.entries) change(entry.bytes);
        }
      };
      each_amount([&sum](Bytes& bytes) { sum += bytes; });
      const Bytes factor = (largest_bytes - 1) / sum;
      each_amount([factor](Bytes& bytes) { bytes *= factor; });
      for (Tier& tier : trace.tiers) {
        if (tier.capacity) *tier.capacity *= factor;
      }
      check(trace);
      for (const Bytes budget : {floor_of(trace).bytes, halfway(trace), keep_everything(trace).budget - 1,
                                 std::numeric_limits<Bytes>::max()}) {
        const PlanResult result = make_plan(trace, options_for(budget, 2'000));
        if (result.has_plan())
          expect_valid(trace, result);
        else
          EXPECT_GT(*result.smallest_feasible, budget);
      }
    }
  }
}

// Unneeded values from outside are there before the plan begins; dropping them is the first thing it does.
TEST(BestAtTheEdge, OfUnusedValuesFromOutside) {
  SmallTrace small;
  small.outside(10);
  small.outside(10);
  small.event({});
  const PlanResult result = make_plan(small.trace, options_for(5, 100));
  ASSERT_TRUE(result.has_plan());
  EXPECT_EQ(result.simulation.peak, 0);
}

// ---- what once went wrong ------------------------------------------------------------------------------------------

// A value that the program holds early and backward needs late: it is put into its tier while it is held, because right
// after that there is no room for value and copy together.
TEST(BestWithTiers, PutsAValueWhileTheProgramHoldsIt) {
  SmallTrace small;
  const Id held = small.outside(6, Stretch{0, 1});
  small.event({});
  small.run({}, {});
  small.event({});
  small.run({held}, {});
  small.trace.moments[2].other = 16;
  Tier packed;
  packed.name = "packed";
  packed.entries = {{held, 5, 0, 0}};
  small.trace.tiers = {packed};
  check(small.trace);
  ASSERT_EQ(testing::lowest_plan(small.trace).peak, 21);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    PlanOptions options = options_for(21, 5'000);
    options.seed = seed;
    EXPECT_TRUE(make_plan(small.trace, options).has_plan()) << "seed " << seed;
  }
}

// At the start of the gap there is no room for value and copy together, later there is.
TEST(BestWithTiers, PutsAValueLateInItsGap) {
  SmallTrace small;
  const Id outside = small.outside(6);
  small.event({});
  small.run({}, {1}, 0);
  small.run({}, {4}, 0);
  small.run({2, 1}, {7}, 0);
  small.run({outside}, {}, 0);
  small.trace.moments[0].other = 18;
  small.trace.moments[3].other = 7;
  Tier packed;
  packed.name = "packed";
  packed.entries = {{outside, 3, 0, 1}};
  small.trace.tiers = {packed};
  check(small.trace);
  ASSERT_EQ(testing::lowest_plan(small.trace).peak, 24);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    PlanOptions options = options_for(24, 20'000);
    options.seed = seed;
    EXPECT_TRUE(make_plan(small.trace, options).has_plan()) << "seed " << seed;
  }
}

// To replay an operator in place its input has to come back: from a copy that was put before it was taken over.
TEST(BestWithTiers, GetsBackAValueThatWasTakenOver) {
  SmallTrace small;
  const Id outside = small.outside(4);
  small.run({outside}, {4});
  small.trace.values[1].takes_over = outside;
  small.run({}, {});
  small.run({1}, {});
  small.trace.moments[1].other = 20;
  Tier packed;
  packed.name = "packed";
  packed.entries = {{outside, 2, 0, 0}};
  small.trace.tiers = {packed};
  check(small.trace);
  ASSERT_EQ(testing::lowest_plan(small.trace).peak, 22);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    PlanOptions options = options_for(22, 20'000);
    options.seed = seed;
    EXPECT_TRUE(make_plan(small.trace, options).has_plan()) << "seed " << seed;
  }
}

// Getting the value costs far more than running everything: cost must not keep a search from finding a plan at all.
TEST(BestWithTiers, FindsAPlanHoweverExpensiveItIs) {
  for (const double cost : {10.0, 1e3, 1e6}) {
    SmallTrace small;
    const Id outside = small.outside(4);
    small.run({}, {4});
    small.event({outside});
    Tier packed;
    packed.name = "packed";
    packed.entries = {{outside, 3, 0, cost}};
    small.trace.tiers = {packed};
    const PlanResult result = make_plan(small.trace, options_for(7, 5'000));
    ASSERT_TRUE(result.has_plan()) << cost;
    EXPECT_DOUBLE_EQ(result.simulation.cost, 1 + cost);
  }
}

// A replay with a workspace of its own needs what lies around to be evicted too, and recomputed after it.
TEST(BestMoves, EvictWhatARepeatItselfHasNoRoomFor) {
  SmallTrace small;
  small.run({}, {1}, 1, 17);
  small.run({}, {12}, 0);
  small.run({1}, {6}, 0);
  small.run({1, 0}, {}, 0);
  ASSERT_EQ(testing::lowest_plan(small.trace).peak, 18);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    PlanOptions options = options_for(18, 20'000);
    options.seed = seed;
    EXPECT_TRUE(make_plan(small.trace, options).has_plan()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace reprise
