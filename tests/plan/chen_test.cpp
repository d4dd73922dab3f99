#include <gtest/gtest.h>

#include "plan/planners.h"
#include "reprise/plan/segments.h"
#include "support/chains.h"
#include "support/random_trace.h"

namespace reprise::chen_test {
using namespace internal;
namespace {

const SimulateOptions any_budget{.record_live = false, .check_budget = false};

// Sixteen layers of one byte, each with a tape of three that its backward needs.
Trace sixteen_layers() {
  testing::ChainForm form = testing::equal_layers(16, {.tape = 3});
  form.events = true;
  return testing::chain_trace(form);
}

TEST(ChenSqrt, ReplaysEachLayerOnceAndNeedsTheSquareRootOfTheMemory) {
  const Trace trace = sixteen_layers();
  const Simulation simulation = simulate(trace, *plan_chen_sqrt(trace, {}), any_budget);
  ASSERT_TRUE(simulation.valid());
  EXPECT_EQ(simulation.replays, 16u);
  // The input, 3 states that cross, and one segment's 4 tapes and states.
  EXPECT_EQ(simulation.peak, 1 + 3 + 4 * 4);
}

TEST(ChenGreedy, TakesTheCheapestPlanThatFitsTheBudget) {
  const Trace trace = sixteen_layers();
  PlanOptions options;
  options.budget = 1 << 20;
  const Simulation generous = simulate(trace, *plan_chen_greedy(trace, options), any_budget);
  options.budget = 24;
  const Simulation tight = simulate(trace, *plan_chen_greedy(trace, options), any_budget);
  EXPECT_LE(tight.peak, 24);
  EXPECT_LE(generous.cost, tight.cost);
}

TEST(ChenGreedy, GivesTheSmallestPeakItFindsWhenNothingFits) {
  const Trace trace = sixteen_layers();
  const Simulation none = simulate(trace, *plan_chen_greedy(trace, {}), any_budget);
  const Simulation square_root = simulate(trace, *plan_chen_sqrt(trace, {}), any_budget);
  EXPECT_TRUE(none.valid());
  EXPECT_LE(none.peak, square_root.peak);
}

TEST(Chen, IsValidOnRandomTraces) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::RandomTraceOptions form;
    form.moments = 3 + static_cast<int>(seed % 40);
    form.events = seed % 3 == 0 ? 0 : 0.08;
    for (const Trace& trace : {testing::random_trace(seed, form), testing::random_graph(seed, form.moments),
                               testing::random_training_step(seed, form.moments / 2)}) {
      PlanOptions options;
      options.budget = static_cast<Bytes>(seed);
      for (const auto& plan : {plan_chen_sqrt(trace, options), plan_chen_greedy(trace, options)}) {
        const Simulation simulation = simulate(trace, *plan, any_budget);
        ASSERT_TRUE(simulation.valid()) << "seed " << seed << ": " << simulation.broken->sentence;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::chen_test
