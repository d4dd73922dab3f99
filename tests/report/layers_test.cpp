// Live bytes by what they are.
#include "report/layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reprise/plan/planner.h"
#include "support/random_plan.h"
#include "support/small_trace.h"

namespace reprise::layers_test {
using namespace internal;
namespace {

constexpr SimulateOptions recorded{.record_live = true, .check_budget = true, .record_residences = true};

// The smallest other bytes from this moment on.
Bytes lasting(const Trace& trace, Id moment) {
  Bytes smallest = trace.moments[moment].other;
  for (Id m = moment; m < trace.moment_count(); ++m) smallest = std::min(smallest, trace.moments[m].other);
  return smallest;
}

TEST(Layers, TogetherAreTheLiveBytesAtEveryActionOfRandomPlans) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    testing::Random random(seed);
    const Trace trace = seed % 3 == 0 ? testing::random_training_step(seed, 6) : testing::random_trace(seed);
    const Plan plan = testing::random_valid_plan(random, trace);
    const Simulation simulation = simulate(trace, plan, recorded);
    ASSERT_TRUE(simulation.valid());
    const std::vector<LayerBytes> layers = layers_of(trace, plan, simulation);
    ASSERT_EQ(layers.size(), plan.actions.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      ASSERT_EQ(layers[i].total(), simulation.live[i]) << "seed " << seed << ", action " << i;
      for (const Bytes bytes : layers[i].of) ASSERT_GE(bytes, 0) << "seed " << seed << ", action " << i;
      // The rest is what the trace says, and not just what is left over.
      if (plan.actions[i].kind != Action::Kind::run) continue;
      const Id m = plan.actions[i].target;
      ASSERT_EQ(layers[i][MemoryLayer::gradients], lasting(trace, m) - lasting(trace, 0));
      ASSERT_EQ(layers[i][MemoryLayer::other], trace.moments[m].other - lasting(trace, m) + trace.workspace(m))
          << "seed " << seed << ", action " << i;
    }
  }
}

TEST(Layers, TellApartWhatIsKeptPackedAndReplayed) {
  testing::SmallTrace small;
  const Id weights = small.outside(100, Stretch{0, 3});
  const Id batch = small.outside(7);
  const Id first = small.run({weights, batch}, {10}, 1, 3);
  const Id second = small.run({2}, {20});
  const Id third = small.event({2});
  const Id last = small.event({3});
  const std::vector<Bytes> other = {1000, 1000, 1050, 1040};
  for (std::size_t m = 0; m < other.size(); ++m) small.trace.moments[m].other = other[m];
  small.trace.tiers.push_back({"bits", std::nullopt, true, {{3, 5, 1, 1}}});
  Plan plan;
  plan.budget = 10000;
  plan.tiers = small.trace.tiers;
  plan.actions = {Action::run(first),    Action::run(second), Action::drop(2),   Action::put(3, 0), Action::drop(3),
                  Action::replay(first), Action::run(third),  Action::get(3, 0), Action::run(last)};
  const auto layers = layers_of(small.trace, plan, simulate(small.trace, plan, recorded));
  const auto expect = [&](std::size_t action, std::array<Bytes, layer_count> of) {
    EXPECT_EQ(layers[action].of, of) << "action " << action;
  };
  expect(0, {1100, 0, 17, 0, 0, 3});
  expect(1, {1100, 0, 37, 0, 0, 0});
  expect(3, {1100, 40, 27, 5, 0, 10});  // at the moment that comes next
  expect(5, {1100, 40, 7, 5, 10, 13});  // with the workspace of the replay
  expect(6, {1100, 40, 7, 5, 10, 10});
  expect(7, {1100, 40, 7, 5, 30, 0});  // the copy leaves when it has been got
  expect(8, {1100, 40, 7, 0, 30, 0});
}

TEST(Layers, InColumnsKeepThePeak) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    testing::Random random(seed);
    const Trace trace = testing::random_trace(seed);
    const Plan plan = testing::random_valid_plan(random, trace);
    const Simulation simulation = simulate(trace, plan, recorded);
    const auto all = layers_of(trace, plan, simulation);
    for (const std::size_t most : {1u, 3u, 240u}) {
      const Columns columns = columns_of(trace, plan, simulation, most);
      ASSERT_EQ(columns.layers.size(), most);
      Bytes peak = 0;
      for (std::size_t column = 0; column < most; ++column) {
        peak = std::max(peak, columns.layers[column].total());
        ASSERT_EQ(columns.layers[column], all[columns.actions[column]]);
      }
      EXPECT_EQ(peak, simulation.peak) << "seed " << seed << ", " << most << " columns";
      EXPECT_NEAR(columns.cost, simulation.cost, 1e-9 * simulation.cost);
    }
  }
}

TEST(Layers, OfATraceWithoutMomentsOrCostsAreThereToo) {
  const Trace nothing;
  const Plan none = keep_everything(nothing);
  EXPECT_TRUE(columns_of(nothing, none, simulate(nothing, none, recorded), 10).layers.empty());
  testing::SmallTrace free;
  free.run({}, {10}, 0);
  free.run({0}, {30}, 0);
  const Plan plan = keep_everything(free.trace);
  const Columns columns = columns_of(free.trace, plan, simulate(free.trace, plan, recorded), 4);
  ASSERT_EQ(columns.layers.size(), 4u);
  EXPECT_EQ(columns.layers.front().total(), 10);
  EXPECT_EQ(columns.layers.back().total(), 40);
}

}  // namespace
}  // namespace reprise::layers_test
