// Where values are, from when to when, and what brought them.
#include <gtest/gtest.h>

#include "reprise/simulate/simulate.h"
#include "support/random_plan.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using Origin = Residence::Origin;

std::vector<Residence> residences_of(const Trace& trace, const Plan& plan) {
  const Simulation simulation = simulate(trace, plan, {.check_budget = false, .record_residences = true});
  EXPECT_TRUE(simulation.valid()) << simulation.broken->sentence;
  return simulation.residences;
}

TEST(Residences, SayWhenEachValueComesAndGoesAndWhy) {
  testing::SmallTrace small;
  const Id input = small.outside(3);
  const Id first = small.run({input}, {10});
  const Id second = small.run({1}, {20});
  const Id third = small.event({1, 2});
  small.trace.tiers.push_back({"bits", std::nullopt, true, {{2, 5, 1, 1}}});
  Plan plan;
  plan.tiers = small.trace.tiers;
  plan.actions = {Action::run(first),     // 0
                  Action::run(second),    // 1
                  Action::drop(1),        // 2
                  Action::put(2, 0),      // 3
                  Action::drop(2),        // 4
                  Action::replay(first),  // 5
                  Action::get(2, 0),      // 6
                  Action::run(third)};    // 7
  const std::vector<Residence> expected = {{1, Origin::run, 0, 0, 2},    {2, Origin::run, 0, 1, 4},
                                           {2, Origin::put, 0, 3, 7},    {0, Origin::outside, 0, 0, 8},
                                           {1, Origin::replay, 0, 5, 8}, {2, Origin::get, 0, 6, 8}};
  EXPECT_EQ(residences_of(small.trace, plan), expected);
}

TEST(Residences, FollowWhatTheProgramHoldsAndWhatIsTakenOver) {
  testing::SmallTrace small;
  const Id batch = small.outside(4, Stretch{1, 1});
  small.run({}, {8});
  small.run({batch, 1}, {8});  // in place
  small.run({2}, {1});
  small.trace.values[2].takes_over = 1;
  Plan plan;
  plan.actions = {Action::run(0), Action::run(1), Action::drop(batch), Action::run(2)};
  const std::vector<Residence> expected = {
      {1, Origin::run, 0, 0, 1}, {0, Origin::outside, 0, 1, 2}, {2, Origin::run, 0, 1, 4}, {3, Origin::run, 0, 3, 4}};
  EXPECT_EQ(residences_of(small.trace, plan), expected);
}

TEST(Residences, AreOnlyRecordedIfAskedForAndChangeNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    testing::Random random(seed);
    const Trace trace = testing::random_trace(seed);
    const Plan plan = testing::random_valid_plan(random, trace);
    const Simulation without = simulate(trace, plan);
    const Simulation with = simulate(trace, plan, {.record_residences = true});
    EXPECT_TRUE(without.residences.empty());
    EXPECT_EQ(with.live, without.live);
    EXPECT_EQ(with.cost, without.cost);
  }
}

}  // namespace
}  // namespace reprise
