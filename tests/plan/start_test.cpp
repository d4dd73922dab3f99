// Planning that begins with a plan: never worse than it, and never led astray by one that makes no sense.
#include <gtest/gtest.h>

#include <atomic>

#include "reprise/plan/planner.h"
#include "reprise/plan/smallest.h"
#include "support/cases.h"
#include "support/random_trace.h"

namespace reprise::start_test {
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::random_case;

PlanOptions options_for(Bytes budget, std::uint64_t moves, std::optional<Plan> start = {}) {
  PlanOptions options;
  options.budget = budget;
  options.moves = moves;
  options.bounds = false;
  options.start = std::move(start);
  return options;
}

// Of the way from the floor to keeping everything.
Bytes budget_at(const Trace& trace, double share) {
  const Bytes floor = floor_of(trace).bytes;
  return floor + static_cast<Bytes>(share * static_cast<double>(keep_everything(trace).budget - floor));
}

void expect_valid(const Trace& trace, const PlanResult& result) {
  ASSERT_TRUE(result.has_plan());
  const Simulation simulation = simulate(trace, result.plan);
  EXPECT_TRUE(simulation.valid()) << simulation.broken->sentence;
  EXPECT_LE(simulation.peak, result.budget);
  EXPECT_EQ(result.plan.budget, result.budget);
}

TEST(PlanStart, IsNeverBetterThanTheResult) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(6); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = random_case(kind, 70 + seed, 30);
      const PlanResult first = make_plan(trace, options_for(budget_at(trace, 0.5), 5'000));
      if (!first.has_plan()) continue;
      for (const double share : {0.5, 0.7, 1.0}) {
        const PlanResult again = make_plan(trace, options_for(budget_at(trace, share), 0, first.plan));
        expect_valid(trace, again);
        EXPECT_LE(again.simulation.cost, first.simulation.cost);
      }
    }
  }
}

TEST(PlanStart, IsThereBeforeAnythingElseIsTried) {
  const Trace trace = testing::random_training_step(5, 40);
  const Plan smallest = smallest_plan(trace, options_for(0, 20'000));
  const std::atomic<bool> cancel = true;
  PlanOptions options = options_for(smallest.budget, 1'000'000, smallest);
  options.cancel = &cancel;
  const PlanResult result = make_plan(trace, options);
  expect_valid(trace, result);
  EXPECT_TRUE(result.cancelled);
}

TEST(PlanStart, AboveTheBudgetIsAPlaceToSearchFrom) {
  int found_without = 0, found_with = 0;
  for (std::uint64_t seed = 1; seed <= cases(5); ++seed) {
    const Trace trace = testing::random_training_step(seed, 40);
    const Plan smallest = smallest_plan(trace, options_for(0, 10'000));
    // A plan that needs a little more than there is.
    const PlanResult near = make_plan(trace, options_for(smallest.budget + smallest.budget / 50, 3'000, smallest));
    ASSERT_TRUE(near.has_plan());
    const PlanResult without = make_plan(trace, options_for(smallest.budget, 3'000));
    const PlanResult with = make_plan(trace, options_for(smallest.budget, 3'000, near.plan));
    if (with.has_plan()) expect_valid(trace, with);
    if (!with.has_plan()) EXPECT_LE(*with.smallest_feasible, near.simulation.peak);
    found_without += without.has_plan();
    found_with += with.has_plan();
  }
  EXPECT_GE(found_with, found_without);
}

// As when the optimizer's state has appeared: the same step with more other bytes, measured again.
TEST(PlanStart, OfTheSameStepWithOtherNumbersIsUsed) {
  for (std::uint64_t seed = 1; seed <= cases(6); ++seed) {
    SCOPED_TRACE(seed);
    Trace trace = random_case(CaseKind::tiers, 40 + seed, 40);
    const PlanResult before = make_plan(trace, options_for(budget_at(trace, 0.4), 5'000));
    if (!before.has_plan()) continue;
    for (Moment& moment : trace.moments) moment.other += 7;
    for (Operator& op : trace.operators) op.cost *= 1.5;
    for (Tier& tier : trace.tiers) {
      for (TierEntry& entry : tier.entries) entry.put_cost *= 2;
    }
    Plan expected = before.plan;
    expected.tiers = trace.tiers;
    expected.budget = before.budget + 7;
    const Simulation simulation = simulate(trace, expected);
    ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
    const PlanResult after = make_plan(trace, options_for(expected.budget, 0, before.plan));
    expect_valid(trace, after);
    EXPECT_LE(after.simulation.cost, simulation.cost);
  }
}

TEST(PlanStart, ThatMakesNoSenseIsIgnored) {
  const Trace trace = random_case(CaseKind::tiers, 3, 30);
  const PlanResult without = make_plan(trace, options_for(budget_at(trace, 0.5), 3'000));
  const Plan everything = keep_everything(trace);
  std::vector<Plan> starts(8, everything);
  starts[0].actions.clear();
  starts[1].actions.front() = Action::run(-1);
  starts[2].actions.insert(starts[2].actions.begin(), Action::run(trace.moment_count()));
  starts[3].actions.insert(starts[3].actions.begin(), Action::replay(1'000'000'000));
  starts[4].actions.insert(starts[4].actions.begin() + 5, Action::get(0, 17));
  starts[5].actions.insert(starts[5].actions.begin() + 5, Action::put(-1, 0));
  starts[6].actions.pop_back();
  while (starts[6].actions.back().kind != Action::Kind::run) starts[6].actions.pop_back();
  starts[6].actions.pop_back();
  starts[7] = keep_everything(testing::random_graph(1, 300));
  for (std::size_t i = 0; i < starts.size(); ++i) {
    SCOPED_TRACE(i);
    const PlanResult with = make_plan(trace, options_for(budget_at(trace, 0.5), 3'000, starts[i]));
    EXPECT_EQ(with.status, without.status);
    EXPECT_EQ(with.plan, without.plan);
  }
}

TEST(PlanStart, OfRandomActionsDoesNoHarm) {
  for (std::uint64_t seed = 1; seed <= cases(30); ++seed) {
    const Trace trace = random_case(all_kinds()[seed % all_kinds().size()], seed, 20);
    testing::Random random(seed);
    Plan start = keep_everything(trace);
    start.tiers = trace.tiers;
    for (int i = 0; i < 5; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(random.below(start.actions.size() + 1));
      const auto kind = static_cast<Action::Kind>(random.below(5));
      start.actions.insert(start.actions.begin() + at, {kind, random.between(-1, 20), random.between(-1, 2)});
    }
    const PlanResult result = make_plan(trace, options_for(budget_at(trace, 0.6), 500, start));
    if (result.has_plan()) expect_valid(trace, result);
  }
}

TEST(PlanStart, IsIgnoredByOtherPlanners) {
  const Trace trace = testing::random_training_step(2, 20);
  const Plan start = make_plan(trace, options_for(budget_at(trace, 0.5), 5'000)).plan;
  for (const PlannerInfo& planner : planners()) {
    // Those that need more than a budget, or a chain.
    if (planner.name == "best" || planner.name == "segments" || planner.name == "every" || planner.name == "chain" ||
        planner.name.ends_with("revolve")) {
      continue;
    }
    PlanOptions options = options_for(keep_everything(trace).budget, 1'000);
    options.planner = std::string(planner.name);
    const PlanResult without = make_plan(trace, options);
    options.start = start;
    EXPECT_EQ(make_plan(trace, options).plan, without.plan) << planner.name;
  }
}

TEST(PlanStart, OfTheSmallestPlanIsNeverLower) {
  for (std::uint64_t seed = 1; seed <= cases(6); ++seed) {
    const Trace trace = testing::random_training_step(seed, 30);
    const Plan first = smallest_plan(trace, options_for(0, 5'000));
    EXPECT_LE(smallest_plan(trace, options_for(0, 0, first)).budget, first.budget);
    const PlanResult hopeless = make_plan(trace, options_for(floor_of(trace).bytes - 1, 100, first));
    EXPECT_LE(*hopeless.smallest_feasible, first.budget);
  }
}

}  // namespace
}  // namespace reprise::start_test
