// What a plan's actions do to the bytes, on traces small enough to work out by hand. What trace.h says is shown here.
#include <gtest/gtest.h>

#include <limits>

#include "reprise/simulate/simulate.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using testing::SmallTrace;
using Numbers = std::vector<Bytes>;

Simulation simulate_all(const Trace& trace, std::vector<Action> actions, std::vector<Tier> tiers = {}) {
  check(trace);
  Plan plan{std::numeric_limits<Bytes>::max(), std::move(tiers), std::move(actions)};
  Simulation result = simulate(trace, plan);
  EXPECT_TRUE(result.valid()) << result.broken->sentence;
  return result;
}

Tier tier(std::vector<TierEntry> entries, bool in_budget = true, std::optional<Bytes> capacity = {}) {
  Tier result;
  result.name = in_budget ? "packed" : "disk";
  result.in_budget = in_budget;
  result.capacity = capacity;
  result.entries = std::move(entries);
  return result;
}

TEST(SimulateBytes, OfAValueAreLiveFromItsMakingToItsDrop) {
  SmallTrace small;
  small.run({}, {10}, 1);
  small.run({0}, {20}, 2);
  small.run({1}, {5}, 4);
  const auto result = simulate_all(
      small.trace, {Action::run(0), Action::run(1), Action::drop(0), Action::run(2), Action::drop(1), Action::drop(2)});
  EXPECT_EQ(result.live, (Numbers{10, 30, 20, 25, 5, 0}));
  EXPECT_EQ(result.peak, 30);
  EXPECT_EQ(result.peak_action, 1u);
  EXPECT_EQ(result.cost, 7);
  EXPECT_EQ(result.replays, 0u);
}

TEST(SimulateBytes, OfAReplayCountAndSoDoesItsCost) {
  SmallTrace small;
  small.run({}, {10}, 1);
  small.run({0}, {20}, 2);
  small.event({0}, 8);
  const auto result = simulate_all(small.trace, {Action::run(0), Action::run(1), Action::drop(0), Action::drop(1),
                                                 Action::replay(0), Action::run(2)});
  EXPECT_EQ(result.live, (Numbers{10, 30, 20, 0, 10, 10}));
  EXPECT_EQ(result.cost, 12);
  EXPECT_EQ(result.replay_cost, 1);
  EXPECT_EQ(result.replays, 1u);
}

TEST(SimulateBytes, OfWorkspaceAreLiveWhileItsOperatorRunsAndReplays) {
  SmallTrace small;
  small.run({}, {10}, 1, 100);
  small.run({}, {20}, 1);
  const auto result =
      simulate_all(small.trace, {Action::run(0), Action::run(1), Action::drop(0), Action::replay(0), Action::drop(0)});
  EXPECT_EQ(result.live, (Numbers{110, 30, 20, 130, 20}));
}

TEST(SimulateBytes, OfOutputsThatAreResidentCountAgainDuringAReplay) {
  SmallTrace small;
  small.run({}, {10, 20, 40}, 1, 3);
  small.event({0, 1, 2});
  const auto result = simulate_all(small.trace, {Action::run(0), Action::drop(1), Action::replay(0), Action::run(1)});
  EXPECT_EQ(result.live, (Numbers{73, 50, 123, 70}));  // 50 are there, 70 are made, 3 to work with
}

TEST(SimulateBytes, OfUnusedOutputsStayUntilTheirDrop) {
  SmallTrace small;
  small.run({}, {10, 20}, 1);
  small.event({0});
  const auto result = simulate_all(small.trace, {Action::run(0), Action::drop(1), Action::drop(0), Action::replay(0),
                                                 Action::drop(1), Action::run(1)});
  EXPECT_EQ(result.live, (Numbers{30, 10, 0, 30, 10, 10}));
}

TEST(SimulateBytes, OfAValueThatTheProgramHoldsStayAfterADropUntilTheStretchIsOver) {
  SmallTrace small;
  small.run({}, {10});
  small.run({0}, {20});
  small.event({1});
  small.event({1});
  small.trace.values[0].held = Stretch{0, 2};
  const auto result =
      simulate_all(small.trace, {Action::run(0), Action::drop(0), Action::run(1), Action::run(2), Action::run(3)});
  EXPECT_EQ(result.live, (Numbers{10, 10, 30, 30, 20}));  // an input at moment 1: it is there all the time
}

TEST(SimulateBytes, OfAValueThatWasNotDroppedStayAfterTheStretch) {
  SmallTrace small;
  small.run({}, {10});
  small.event({});
  small.event({});
  small.trace.values[0].held = Stretch{0, 0};
  const auto result = simulate_all(small.trace, {Action::run(0), Action::run(1), Action::drop(0), Action::run(2)});
  EXPECT_EQ(result.live, (Numbers{10, 10, 0, 0}));
}

TEST(SimulateBytes, OfAValueReplayedWhileHeldCountTwiceAndThenItIsOursAgain) {
  SmallTrace small;
  small.run({}, {10});
  small.event({});
  small.event({0});
  small.trace.values[0].held = Stretch{0, 1};
  const auto result = simulate_all(small.trace, {Action::run(0), Action::drop(0), Action::replay(0), Action::run(1),
                                                 Action::run(2), Action::drop(0)});
  EXPECT_EQ(result.live, (Numbers{10, 10, 20, 10, 10, 0}));
}

TEST(SimulateBytes, OfAStretchThatStartsLaterAreHeldFromThere) {
  SmallTrace small;
  small.run({}, {10});
  small.event({});
  small.event({});
  small.event({});
  small.trace.values[0].held = Stretch{2, 2};
  const auto result = simulate_all(small.trace, {Action::run(0), Action::drop(0), Action::run(1), Action::replay(0),
                                                 Action::run(2), Action::drop(0), Action::run(3)});
  EXPECT_EQ(result.live, (Numbers{10, 0, 0, 10, 10, 0, 0}));
  EXPECT_EQ(result.peak_action, 0u);  // the first of those that reach it
}

TEST(SimulateBytes, OfAStretchThatStartsLaterStayWhenDroppedInsideIt) {
  SmallTrace small;
  small.run({}, {10});
  small.event({});
  small.event({});
  small.event({});
  small.trace.values[0].held = Stretch{1, 2};
  const auto result =
      simulate_all(small.trace, {Action::run(0), Action::run(1), Action::drop(0), Action::run(2), Action::run(3)});
  EXPECT_EQ(result.live, (Numbers{10, 10, 10, 10, 0}));
}

TEST(SimulateBytes, OfValuesFromOutsideAreLiveFromTheStartOrFromTheirArrival) {
  SmallTrace small;
  small.outside(100);
  small.outside(10, Stretch{1, 2});
  small.event({});
  small.event({1});
  small.event({});
  small.event({});
  const auto result = simulate_all(
      small.trace, {Action::run(0), Action::drop(0), Action::run(1), Action::drop(1), Action::run(2), Action::run(3)});
  EXPECT_EQ(result.live, (Numbers{100, 0, 10, 10, 10, 0}));
}

TEST(SimulateBytes, OfAnOutputInPlaceAreThoseOfItsInput) {
  SmallTrace small;
  small.run({}, {10});
  small.run({0}, {10, 5});
  small.event({1});
  small.trace.values[1].takes_over = 0;
  const auto result = simulate_all(small.trace, {Action::run(0), Action::run(1), Action::run(2), Action::drop(1)});
  EXPECT_EQ(result.live, (Numbers{10, 15, 15, 5}));
}

TEST(SimulateBytes, OfAnOutputInPlaceAreNewOnesInAReplayAndTheInputStays) {
  SmallTrace small;
  small.run({}, {10});
  small.run({0}, {10});
  small.event({1});
  small.trace.values[1].takes_over = 0;
  const auto result = simulate_all(small.trace, {Action::run(0), Action::run(1), Action::drop(1), Action::replay(0),
                                                 Action::replay(1), Action::run(2), Action::drop(0), Action::drop(1)});
  EXPECT_EQ(result.live, (Numbers{10, 10, 0, 10, 20, 20, 10, 0}));
}

TEST(SimulateBytes, OfAnInputTakenOverEndEvenIfItWasDroppedWhileHeld) {
  SmallTrace small;
  small.run({}, {10});
  small.run({0}, {10});
  small.event({1});
  small.trace.values[0].held = Stretch{0, 1};
  small.trace.values[1].takes_over = 0;
  const auto result = simulate_all(small.trace, {Action::run(0), Action::drop(0), Action::run(1), Action::run(2)});
  EXPECT_EQ(result.live, (Numbers{10, 10, 10, 10}));
}

TEST(SimulateBytes, OfOthersBelongToTheLaterMoment) {
  SmallTrace small;
  small.run({}, {10});
  small.run({}, {20});
  small.event({0});
  small.trace.moments[0].other = 1;
  small.trace.moments[1].other = 100;
  small.trace.moments[2].other = 1000;
  const auto result = simulate_all(small.trace, {Action::run(0), Action::drop(0), Action::replay(0), Action::drop(0),
                                                 Action::run(1), Action::replay(0), Action::run(2), Action::replay(1)});
  // A drop belongs to the action before it; after the last moment its other bytes stay.
  EXPECT_EQ(result.live, (Numbers{11, 1, 110, 100, 120, 1030, 1030, 1050}));
}

TEST(SimulateBytes, OfACopyInATierCountIfTheTierIsInTheBudget) {
  SmallTrace small;
  small.run({}, {10}, 1);
  small.event({0});
  const std::vector<Action> actions = {Action::run(0), Action::put(0, 0), Action::drop(0), Action::get(0, 0),
                                       Action::run(1)};
  const auto packed = simulate_all(small.trace, actions, {tier({{0, 4, 0.5, 0.25}})});
  EXPECT_EQ(packed.live, (Numbers{10, 14, 4, 14, 10}));  // the copy leaves with the last get, after it
  EXPECT_EQ(packed.cost, 1.75);
  EXPECT_EQ(packed.tier_cost, 0.75);
  EXPECT_EQ(packed.puts, 1u);
  EXPECT_EQ(packed.gets, 1u);
  EXPECT_EQ(packed.tier_peaks, (Numbers{4}));
  const auto disk = simulate_all(small.trace, actions, {tier({{0, 10, 0.5, 0.25}}, false)});
  EXPECT_EQ(disk.live, (Numbers{10, 10, 0, 10, 10}));
  EXPECT_EQ(disk.tier_peaks, (Numbers{10}));
}

TEST(SimulateBytes, OfACopyStayUntilTheLastGetBeforeItIsPutAgain) {
  SmallTrace small;
  small.run({}, {10});
  small.event({0});
  const auto result =
      simulate_all(small.trace,
                   {Action::run(0), Action::put(0, 0), Action::drop(0), Action::get(0, 0), Action::drop(0),
                    Action::get(0, 0), Action::put(0, 0), Action::drop(0), Action::get(0, 0), Action::run(1)},
                   {tier({{0, 4, 0, 0}}, true, 4)});
  EXPECT_EQ(result.live, (Numbers{10, 14, 4, 14, 4, 14, 14, 4, 14, 10}));
}

TEST(SimulateBytes, OfACopyWithoutAGetStayToTheEnd) {
  SmallTrace small;
  small.run({}, {10});
  small.event({0});
  const auto result = simulate_all(small.trace, {Action::run(0), Action::put(0, 0), Action::run(1), Action::drop(0)},
                                   {tier({{0, 4, 0, 0}})});
  EXPECT_EQ(result.live, (Numbers{10, 14, 14, 4}));
}

TEST(SimulateBytes, OfOneValueCanBeInTwoTiers) {
  SmallTrace small;
  small.run({}, {10});
  small.event({0});
  const auto result = simulate_all(
      small.trace,
      {Action::run(0), Action::put(0, 0), Action::put(0, 1), Action::drop(0), Action::get(0, 1), Action::run(1)},
      {tier({{0, 4, 0, 0}}), tier({{0, 5, 0, 0}})});
  EXPECT_EQ(result.live, (Numbers{10, 14, 19, 9, 19, 14}));
}

TEST(SimulateBytes, OfAPlanForAnEmptyTraceAreNone) {
  const auto result = simulate_all(Trace{}, {});
  EXPECT_EQ(result.peak, 0);
  EXPECT_EQ(result.cost, 0);
}

TEST(SimulateBytes, AreOnlyRecordedIfAskedFor) {
  SmallTrace small;
  small.run({}, {10});
  const Plan plan{10, {}, {Action::run(0)}};
  EXPECT_TRUE(simulate(small.trace, plan, {.record_live = false}).live.empty());
  EXPECT_EQ(simulate(small.trace, plan, {.record_live = false}).peak, 10);
}

}  // namespace
}  // namespace reprise
