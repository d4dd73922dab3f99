#include "reprise/plan/revolve.h"

#include <gtest/gtest.h>

#include <queue>

#include "plan/planners.h"
#include "reprise/trace/error.h"
#include "support/chains.h"
#include "support/random_trace.h"
#include "support/shortest_plan.h"
#include "support/small_trace.h"

namespace reprise::revolve_test {
using namespace internal;
namespace {

using testing::equal_layers;

const SimulateOptions any_budget{.record_live = false, .check_budget = false};

TEST(Revolve, HasTheKnownNumbersOfSteps) {
  EXPECT_EQ(revolve_steps(1000, 5), 7284);
  EXPECT_EQ(revolve_steps(1000, 10), 4636);
  EXPECT_EQ(revolve_steps(1000, 20), 3747);
  EXPECT_EQ(revolve_steps(100, 10), 322);
  EXPECT_EQ(revolve_steps(0, 1), 0);
  EXPECT_EQ(revolve_steps(1, 1), 1);
  EXPECT_EQ(revolve_steps(7, 100), 13);
  EXPECT_THROW((void)revolve_steps(5, 0), BadOption);
  EXPECT_THROW((void)revolve_steps(-1, 3), BadOption);
}

TEST(Revolve, ClosedFormIsTheOptimumOfTheRecursionForUpTo300LayersAndAllSlots) {
  constexpr int most = 300;
  std::vector<std::vector<std::int64_t>> best(most + 1, std::vector<std::int64_t>(most + 1, 0));  // [slots][layers]
  for (int slots = 1; slots <= most; ++slots) {
    best[slots][1] = 1;
    for (int layers = 2; layers <= most; ++layers) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (int j = slots == 1 ? layers - 1 : 1; j < layers; ++j) {
        const std::int64_t beyond = layers - j == 1 ? 1 : best[slots - 1][layers - j];
        least = std::min(least, j + beyond + best[slots][j]);
      }
      best[slots][layers] = least;
      ASSERT_EQ(revolve_steps(layers, slots), least) << layers << " layers, " << slots << " slots";
    }
  }
}

TEST(Revolve, SchedulesHaveThatManyStepsAndKeepToTheirSlots) {
  for (const int layers : {1, 2, 3, 5, 8, 13, 40, 99, 100, 300}) {
    for (int slots = 1; slots <= layers + 1; ++slots) {
      const ChainSteps steps = revolve_schedule(layers, slots);
      const auto report = testing::execute_steps(steps, layers);
      ASSERT_EQ(report.mistake, "") << layers << " layers, " << slots << " slots";
      ASSERT_LE(report.most_stored[0], slots);
      ASSERT_EQ(report.tapes, layers);
      ASSERT_EQ(report.advances + report.tapes, revolve_steps(layers, slots)) << layers << ", " << slots;
    }
  }
  EXPECT_EQ(forward_steps(revolve_schedule(1000, 5)), 7284u);
}

TEST(Revolve, StepsAreTheSameOneByOneAndInPiecesOfAnySize) {
  for (const int layers : {0, 1, 2, 3, 7, 20, 21, 22, 60, 150}) {
    for (const int slots : {1, 2, 3, 6, 20, 60, 200}) {
      ChainSteps single;
      const auto source = revolve_source(layers, slots);
      while (const auto step = source->next()) single.push_back(*step);
      for (const std::size_t piece : {2u, 7u, 40u, 258u}) {
        ChainSteps steps;
        const auto again = revolve_source(layers, slots);
        for (std::size_t got = piece; got == piece;) {
          steps.resize(steps.size() + piece);
          got = again->fill(std::span(steps).last(piece));
          steps.resize(steps.size() - piece + got);
        }
        ASSERT_EQ(steps, single) << layers << " layers, " << slots << " slots, " << piece << " at once";
      }
    }
  }
}

// Every order of advancing, storing, loading and taping there is, by Dijkstra's algorithm.
std::int64_t fewest_steps(int layers, int slots) {
  using Node = std::tuple<std::int64_t, int, int, unsigned>;  // steps, layers left, state at hand or -1, stored states
  std::priority_queue<Node, std::vector<Node>, std::greater<>> queue;
  std::vector<std::int64_t> best((layers + 1) * (layers + 2) << layers, -1);
  queue.push({0, layers, 0, 0});
  while (!queue.empty()) {
    const auto [steps, left, current, stored] = queue.top();
    queue.pop();
    auto& seen = best[(left * (layers + 2) + current + 1) << layers | stored];
    if (seen >= 0) continue;
    seen = steps;
    if (left == 0) return steps;
    if (current >= 0) {
      if (current + 1 < left) queue.push({steps + 1, left, current + 1, stored});
      if (current + 1 == left) queue.push({steps + 1, left - 1, -1, stored});
      if (__builtin_popcount(stored) < slots) queue.push({steps, left, current, stored | 1U << current});
    }
    for (int k = 0; k < layers; ++k) {
      if (!(stored >> k & 1)) continue;
      queue.push({steps, left, k, stored});
      queue.push({steps, left, current, stored & ~(1U << k)});
    }
  }
  return -1;
}

TEST(Revolve, NoOrderOfStepsIsBetterOnChainsOfUpToSevenLayers) {
  for (int layers = 1; layers <= 7; ++layers) {
    for (int slots = 1; slots <= layers; ++slots) {
      EXPECT_EQ(revolve_steps(layers, slots), fewest_steps(layers, slots)) << layers << ", " << slots;
    }
  }
}

TEST(PlanRevolve, RunsAndReplaysAsManyStepsAsTheClosedForm) {
  for (const auto& [slots, steps] : {std::pair(5, 7284), std::pair(10, 4636), std::pair(20, 3747)}) {
    for (const bool events : {false, true}) {
      testing::ChainForm form = equal_layers(1000, {.tape = 1, .backward_cost = 0});
      form.events = events;
      const Trace trace = testing::chain_trace(form);
      PlanOptions options;
      options.planner = RevolvePlanner{slots};
      const Simulation simulation = simulate(trace, *plan_revolve(trace, options), any_budget);
      ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
      EXPECT_EQ(simulation.cost, steps);
    }
  }
}

// The interpreter counts a layer's input and output while it runs, so Revolve's s slots need s + 2 bytes here, and
// where these two are free for a while a plan can do more with them: Revolve is never better than the best plan, and
// with one byte less it could not run. Without a tape, backward needs no taping step; the last layer still runs.
TEST(PlanRevolve, NeedsTwoBytesMoreThanSlotsAndIsNeverBetterThanTheBestPlan) {
  for (int layers = 3; layers <= 7; ++layers) {
    const Trace trace = testing::graph_chain(layers);
    for (int slots = 1; slots <= layers - 2; ++slots) {
      PlanOptions options;
      options.planner = RevolvePlanner{slots};
      const Simulation simulation = simulate(trace, *plan_revolve(trace, options), any_budget);
      ASSERT_TRUE(simulation.valid());
      EXPECT_LE(simulation.peak, slots + 2);
      EXPECT_LE(simulation.cost, revolve_steps(layers, slots));
      EXPECT_GE(simulation.cost, testing::shortest_plan(trace, slots + 2)) << layers << ", " << slots;
    }
  }
}

TEST(PlanRevolve, TakesAsManySlotsAsTheBudgetAllows) {
  const Trace trace = testing::graph_chain(60);
  double last = std::numeric_limits<double>::infinity();
  for (Bytes budget = 3; budget <= 62; ++budget) {
    PlanOptions options;
    options.budget = budget;
    const Simulation simulation = simulate(trace, *plan_revolve(trace, options), {});
    ASSERT_TRUE(simulation.valid()) << budget << ": " << simulation.broken->sentence;
    EXPECT_LE(simulation.cost, last);
    last = simulation.cost;
  }
  EXPECT_EQ(last, trace.total_cost());
}

TEST(PlanRevolve, GivesItsSmallestPeakWhenNothingFits) {
  const Trace trace = testing::graph_chain(20);
  const Simulation simulation = simulate(trace, *plan_revolve(trace, {}), any_budget);
  EXPECT_TRUE(simulation.valid());
  EXPECT_EQ(simulation.peak, 3);
}

std::string complaint(const Trace& trace) {
  try {
    (void)plan_revolve(trace, {});
  } catch (const BadOption& error) {
    return error.what();
  }
  return "";
}

TEST(PlanRevolve, SaysWhichMomentIsNotInAChain) {
  testing::SmallTrace residual;
  residual.outside(1);
  for (Id v = 0; v < 3; ++v) residual.run({v}, {1});
  residual.run({3, 1}, {1});
  residual.trace.operators[3].name = "add";
  for (Id v = 4; v >= 1; --v) residual.event({v});
  EXPECT_EQ(complaint(residual.trace),
            "planner revolve needs a chain: moment 3 'add' reads two states, values 3 and 1");

  testing::SmallTrace skipping;
  skipping.outside(1);
  for (Id v = 0; v < 3; ++v) skipping.run({v}, {1});
  skipping.run({1}, {1});
  for (Id v = 4; v >= 1; --v) skipping.event({v});
  EXPECT_EQ(complaint(skipping.trace),
            "planner revolve needs a chain: moment 3 'operator 3' reads value 1 of moment 0, not the state before it");

  testing::SmallTrace forwards;
  forwards.outside(1);
  for (Id v = 0; v < 6; ++v) forwards.run({v}, {1});
  for (Id v = 5; v >= 3; --v) forwards.event({v});
  forwards.event({2, 4});
  forwards.event({1});
  forwards.event({0});
  EXPECT_EQ(
      complaint(forwards.trace),
      "planner revolve needs a chain: moment 9 'event 9' needs value 4 of layer 4 where backward of layer 3 is due");

  EXPECT_NE(complaint(testing::random_graph(3, 30)), "");
}

TEST(PlanRevolve, OptionsThatCannotBeAreErrors) {
  PlanOptions options;
  options.planner = RevolvePlanner{0};
  EXPECT_THROW((void)plan_revolve(testing::graph_chain(5), options), BadOption);
}

}  // namespace
}  // namespace reprise::revolve_test
