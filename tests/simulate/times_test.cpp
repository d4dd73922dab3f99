// Time: tiers work beside the computation, which waits for what it needs and for what it gives away.
#include <gtest/gtest.h>

#include <limits>

#include "reprise/simulate/simulate.h"
#include "support/small_trace.h"

namespace reprise::times_test {
namespace {

using testing::SmallTrace;
constexpr Bytes plenty = std::numeric_limits<Bytes>::max();
constexpr Id disk = 0, a = 0, b = 1;

// a and b of 10 bytes, five moments more, and an event that needs a; each moment takes 1. To put takes 3, to get 2.
Trace example(double put_cost = 0, double get_cost = 0) {
  SmallTrace small;
  small.run({}, {10});
  small.run({}, {10});
  for (int i = 0; i < 5; ++i) small.run({}, {});
  small.event({a}, 1);
  Tier tier;
  tier.name = "disk";
  tier.in_budget = false;
  tier.entries = {{a, 10, put_cost, get_cost, 3, 2}, {b, 10, put_cost, get_cost, 3, 2}};
  small.trace.tiers = {tier};
  check(small.trace);
  return small.trace;
}

Simulation simulated(const Trace& trace, std::vector<Action> actions) {
  Simulation result = simulate(trace, Plan{plenty, trace.tiers, std::move(actions)}, {.record_times = true});
  EXPECT_TRUE(result.valid()) << result.broken->sentence;
  EXPECT_DOUBLE_EQ(result.cost, trace.total_cost() + result.replay_cost + result.tier_cost + result.waited);
  return result;
}

std::vector<Action> runs(Id first, Id last) {
  std::vector<Action> actions;
  for (Id m = first; m <= last; ++m) actions.push_back(Action::run(m));
  return actions;
}

std::vector<Action> joined(std::vector<std::vector<Action>> parts) {
  std::vector<Action> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(SimulateTimes, AreThoseOfTheComputationIfTransfersAreOverInTime) {
  const Trace trace = example();
  const Simulation result = simulated(trace, joined({{Action::run(0), Action::put(a, disk)},
                                                     runs(1, 3),
                                                     {Action::drop(a), Action::run(4), Action::get(a, disk)},
                                                     runs(5, 7)}));
  EXPECT_EQ(result.cost, 8);
  EXPECT_EQ(result.waited, 0);
  EXPECT_EQ(result.transfers, (std::vector<Transfer>{{1, 1, 4}, {7, 5, 7}}));
}

TEST(SimulateTimes, GrowWhereAValueIsDroppedBeforeItsPutIsOver) {
  const Simulation result = simulated(
      example(),
      joined(
          {{Action::run(0), Action::put(a, disk), Action::drop(a)}, runs(1, 4), {Action::get(a, disk)}, runs(5, 7)}));
  EXPECT_EQ(result.cost, 8 + 3);
  EXPECT_EQ(result.waited, 3);
  EXPECT_EQ(result.times[2], 1) << "the drop begins to wait";
  EXPECT_EQ(result.times[3], 4) << "and ends with the put";
}

TEST(SimulateTimes, GrowWhereAValueIsNeededBeforeItsGetIsOver) {
  const Simulation result = simulated(example(), joined({{Action::run(0), Action::put(a, disk)},
                                                         runs(1, 6),
                                                         {Action::drop(a), Action::get(a, disk), Action::run(7)}}));
  EXPECT_EQ(result.cost, 8 + 2);
  EXPECT_EQ(result.waited, 2);
}

TEST(SimulateTimes, OfTransfersFollowOneAnotherInOneTier) {
  const auto actions = joined({runs(0, 1),
                               {Action::put(a, disk), Action::put(b, disk)},
                               runs(2, 5),
                               {Action::drop(a), Action::get(a, disk)},
                               runs(6, 7)});
  Trace trace = example();
  EXPECT_EQ(simulated(trace, actions).transfers, (std::vector<Transfer>{{2, 2, 5}, {3, 5, 8}, {9, 8, 10}}));
  trace.tiers[disk].duplex = true;
  EXPECT_EQ(simulated(trace, actions).transfers, (std::vector<Transfer>{{2, 2, 5}, {3, 5, 8}, {9, 6, 8}}));
}

TEST(SimulateTimes, OfADuplexTierLeaveTheRoomOfAGetUntilItIsOver) {
  Trace trace = example();
  trace.tiers[disk].duplex = true;
  const auto actions = joined({{Action::run(0), Action::put(a, disk)},
                               runs(1, 3),
                               {Action::drop(a), Action::get(a, disk), Action::put(b, disk)},
                               runs(4, 7)});
  EXPECT_EQ(simulated(trace, actions).transfers.back(), (Transfer{7, 4, 7}));
  trace.tiers[disk].capacity = 15;
  EXPECT_EQ(simulated(trace, actions).transfers.back(), (Transfer{7, 6, 9}));
}

TEST(SimulateTimes, HaveWhatTheComputationPaysInFrontOfATransfer) {
  const Simulation result = simulated(
      example(0.5, 0.25),
      joined(
          {{Action::run(0), Action::put(a, disk)}, runs(1, 4), {Action::drop(a), Action::get(a, disk)}, runs(5, 7)}));
  EXPECT_EQ(result.cost, 8.75);
  EXPECT_EQ(result.tier_cost, 0.75);
  EXPECT_EQ(result.transfers, (std::vector<Transfer>{{1, 1.5, 4.5}, {7, 5.75, 7.75}}));
}

TEST(SimulateTimes, GrowByAPutOfWhatTheProgramHoldsAndMayWriteInto) {
  Trace trace = example();
  trace.values[a].held = Stretch{0, 1};
  check(trace);
  const Simulation held = simulated(
      trace,
      joined(
          {{Action::run(0), Action::put(a, disk), Action::drop(a)}, runs(1, 4), {Action::get(a, disk)}, runs(5, 7)}));
  EXPECT_EQ(held.waited, 3);
  EXPECT_EQ(held.times[2], 4) << "the put waits";
  const Simulation free = simulated(
      trace,
      joined({runs(0, 1), {Action::put(a, disk)}, runs(2, 4), {Action::drop(a), Action::get(a, disk)}, runs(5, 7)}));
  EXPECT_EQ(free.waited, 0);
}

TEST(SimulateTimes, GrowWhereTheProgramBeginsToHoldWhatIsPut) {
  Trace trace = example();
  trace.values[a].held = Stretch{2, 3};
  check(trace);
  EXPECT_EQ(simulated(trace, joined({{Action::run(0), Action::put(a, disk)}, runs(1, 7)})).waited, 2);
}

TEST(SimulateTimes, GrowWhereAStorageIsTakenOverWhileItIsPut) {
  SmallTrace small;
  small.run({}, {10});
  small.run({a}, {10});
  small.event({b});
  small.trace.values[b].takes_over = a;
  Tier tier;
  tier.in_budget = false;
  tier.entries = {{a, 10, 0, 0, 3, 2}};
  small.trace.tiers = {tier};
  check(small.trace);
  EXPECT_EQ(simulated(small.trace, {Action::run(0), Action::put(a, disk), Action::run(1), Action::run(2)}).waited, 3);
}

TEST(SimulateTimes, DoNotGrowByTransfersWithoutAWait) {
  EXPECT_EQ(simulated(example(), joined({runs(0, 7), {Action::put(a, disk)}})).cost, 8);
}

}  // namespace
}  // namespace reprise::times_test
