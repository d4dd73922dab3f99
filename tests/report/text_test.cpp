// Results of planners and of the interpreter as text.
#include "reprise/report/text.h"

#include <gtest/gtest.h>

#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise::text_test {
namespace {

using testing::SmallTrace;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Four operators, the first one's value needed again by the last; 3 MiB keep everything, 2 MiB replay one.
Trace small_trace() {
  constexpr Bytes MiB = Bytes{1} << 20;
  SmallTrace small;
  small.run({}, {MiB}, 10);
  small.run({0}, {MiB}, 10);
  small.run({1}, {MiB}, 10);
  small.run({0, 2}, {MiB / 2}, 10);
  small.trace.name = "small";
  return small.trace;
}

PlanResult plan_for(const Trace& trace, Bytes budget) {
  PlanOptions options;
  options.budget = budget;
  options.moves = 1000;
  return make_plan(trace, options);
}

TEST(PlanText, TellsOverheadProofAndPeak) {
  const Trace trace = small_trace();
  const std::string text = to_text(trace, plan_for(trace, keep_everything(trace).budget));
  EXPECT_TRUE(has(text, "small: a plan for 3.00 MiB (1.00 of everything)\n")) << text;
  EXPECT_TRUE(has(text, "overhead    none\n"));
  EXPECT_TRUE(has(text, "proof       optimal: no plan for this budget costs less\n"));
  EXPECT_TRUE(has(text, "peak        3.00 MiB of 3.00 MiB\n"));
}

TEST(PlanText, OfAnInfeasibleBudgetTellsWhatToTryAndWhatIsInTheWay) {
  const Trace trace = small_trace();
  const PlanResult result = plan_for(trace, 1000);
  ASSERT_FALSE(result.has_plan());
  const std::string text = to_text(trace, result);
  EXPECT_TRUE(has(text, "small: no plan can fit into 1000 B")) << text;
  EXPECT_TRUE(has(text, "--budget " + std::to_string(*result.smallest_feasible)));
  EXPECT_TRUE(has(text, "in the way  moment"));
  EXPECT_TRUE(has(text, "value 0 of 'operator 0' (1.00 MiB)"));
}

TEST(PlanText, OfASimplePlannerThatWasNotAskedNamesTheOneThatFound) {
  const Trace trace = small_trace();
  PlanOptions options;
  options.planner = "keep-everything";
  options.budget = 1000;
  EXPECT_TRUE(has(to_text(trace, make_plan(trace, options)), "--planner best, the smallest that was found to work"));
}

TEST(PlanText, ShowsNotesUnlessThereIsNothingLeftToWish) {
  const Trace trace = small_trace();
  PlanResult result = plan_for(trace, keep_everything(trace).budget);
  result.notes = {"something was missing"};
  EXPECT_FALSE(has(to_text(trace, result), "something was missing"));
  result.status = PlanStatus::feasible;
  EXPECT_TRUE(has(to_text(trace, result), "note        something was missing\n"));
}

TEST(SimulationText, DrawsTheLiveBytesOfAValidPlan) {
  const Trace trace = small_trace();
  const Plan plan = keep_everything(trace);
  const std::string text = to_text(trace, plan, simulate(trace, plan));
  EXPECT_TRUE(has(text, "small: a valid plan within its budget of 3.00 MiB\n")) << text;
  EXPECT_TRUE(has(text, "peak        3.00 MiB, at action 2: run of moment 2 'operator 2'\n")) << text;
  EXPECT_TRUE(has(text, "live bytes  ▃▆█")) << text;
}

TEST(SimulationText, NamesEachTierThatIsUsed) {
  testing::SmallTrace small;
  small.run({}, {100});
  small.run({}, {2048});
  small.run({}, {10});
  small.event({0, 1});
  small.trace.tiers = {{"packed", std::nullopt, true, {{0, 12, 0, 0}}},
                       {"disk", std::nullopt, false, {{0, 100, 0, 0}}},
                       {"host", std::nullopt, false, {{1, 2048, 0, 0}}}};
  const Plan plan{3000,
                  small.trace.tiers,
                  {Action::run(0), Action::put(0, 0), Action::drop(0), Action::run(1), Action::put(1, 2),
                   Action::drop(1), Action::run(2), Action::get(0, 0), Action::get(1, 2), Action::run(3)}};
  const Simulation simulation = simulate(small.trace, plan);
  const std::string text = to_text(small.trace, plan, simulation);
  const std::string tiers =
      "  tier        'packed': 1 put, 1 get, at most 12 B there\n"
      "  tier        'host': 1 put, 1 get, at most 2.00 KiB there\n";
  EXPECT_TRUE(has(text, tiers)) << text;
  EXPECT_FALSE(has(text, "disk")) << text;
  EXPECT_FALSE(has(text, "packing")) << text;
  PlanResult result;
  result.status = PlanStatus::feasible;
  result.plan = plan;
  result.simulation = simulation;
  EXPECT_TRUE(has(to_text(small.trace, result), tiers)) << to_text(small.trace, result);
}

TEST(SimulationText, OfAnInvalidPlanIsTheBrokenRule) {
  const Trace trace = small_trace();
  Plan plan = keep_everything(trace);
  plan.actions.erase(plan.actions.begin());
  const Simulation simulation = simulate(trace, plan);
  const std::string text = to_text(trace, plan, simulation);
  EXPECT_TRUE(has(text, "small: not a valid plan\n  action 0, run 1")) << text;
  EXPECT_TRUE(has(text, simulation.broken->sentence));
}

TEST(Texts, CanBeMadeOfWhatever) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Trace trace = testing::random_trace(seed, {.moments = static_cast<int>(seed)});
    const Plan everything = keep_everything(trace);
    for (const Bytes budget : {Bytes{0}, everything.budget / 2, everything.budget}) {
      EXPECT_TRUE(to_text(trace, plan_for(trace, budget)).ends_with("\n"));
    }
    EXPECT_TRUE(to_text(trace, everything, simulate(trace, everything)).ends_with("\n"));
  }
}

}  // namespace
}  // namespace reprise::text_test
