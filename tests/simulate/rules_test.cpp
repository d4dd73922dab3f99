// Every rule a plan can break is broken, and the interpreter names the action, the value and the rule.
#include <gtest/gtest.h>

#include <limits>

#include "reprise/simulate/simulate.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using testing::SmallTrace;
constexpr Bytes plenty = std::numeric_limits<Bytes>::max();

// 0 makes value 1 from 0 (outside), 1 makes 2 from 1 and may not be replayed, 2 is an event that needs 1 and 2.
Trace example() {
  SmallTrace small;
  small.outside(5);
  small.run({0}, {10});
  small.run({1}, {20});
  small.event({1, 2});
  small.trace.operators[1].replayable = false;
  check(small.trace);
  return small.trace;
}

std::vector<Tier> one_tier() {
  Tier tier;
  tier.name = "packed";
  tier.capacity = 12;
  tier.entries = {{1, 8, 0, 0}, {2, 16, 0, 0}};
  return {tier};
}

void expect_broken(const Trace& trace, const Plan& plan, Rule rule, std::size_t action, std::optional<Id> value) {
  const auto result = simulate(trace, plan);
  ASSERT_TRUE(result.broken) << "expected a broken rule: " << name(rule);
  EXPECT_EQ(result.broken->rule, rule) << result.broken->sentence;
  EXPECT_EQ(result.broken->action, action) << result.broken->sentence;
  EXPECT_EQ(result.broken->value, value) << result.broken->sentence;
  EXPECT_EQ(result.live.size(), action);
  const std::string& sentence = result.broken->sentence;
  EXPECT_NE(sentence.find(name(rule)), std::string::npos) << sentence;
  if (value) {
    EXPECT_NE(sentence.find("value " + std::to_string(*value)), std::string::npos) << sentence;
  }
  if (action < plan.actions.size()) {
    EXPECT_NE(sentence.find("action " + std::to_string(action)), std::string::npos) << sentence;
  }
}

void expect_broken(std::vector<Action> actions, Rule rule, std::size_t action, std::optional<Id> value = {}) {
  expect_broken(example(), Plan{plenty, one_tier(), std::move(actions)}, rule, action, value);
}

TEST(SimulateRules, AreAllKeptByAPlanThatRunsEverything) {
  const auto result = simulate(example(), Plan{35, {}, {Action::run(0), Action::run(1), Action::run(2)}});
  EXPECT_TRUE(result.valid());
  EXPECT_EQ(result.peak, 35);
}

TEST(SimulateRules, KnownMomentsValuesAndTiersOnly) {
  expect_broken({Action::run(3)}, Rule::known, 0);
  expect_broken({Action::run(-1)}, Rule::known, 0);
  expect_broken({Action::run(0), Action::replay(7)}, Rule::known, 1);
  expect_broken({Action::run(0), Action::drop(3)}, Rule::known, 1);
  expect_broken({Action::run(0), Action::drop(-1)}, Rule::known, 1);
  expect_broken({Action::put(9, 0)}, Rule::known, 0);
  expect_broken({Action::run(0), Action::put(1, 1)}, Rule::known, 1, 1);
  expect_broken({Action::run(0), Action::get(1, -1)}, Rule::known, 1, 1);
  expect_broken({Action{static_cast<Action::Kind>(9), 0, 0}}, Rule::known, 0);
}

TEST(SimulateRules, EachMomentRunsOnceAndInOrder) {
  expect_broken({Action::run(1)}, Rule::run_once, 0);
  expect_broken({Action::run(0), Action::run(0)}, Rule::run_once, 1);
  expect_broken({Action::run(0), Action::run(2)}, Rule::run_once, 1);
}

TEST(SimulateRules, OnlyWhatHasRunIsReplayed) {
  expect_broken({Action::replay(0)}, Rule::has_run, 0);
  expect_broken({Action::run(0), Action::replay(1)}, Rule::has_run, 1);
}

TEST(SimulateRules, OnlyWhatMayBeReplayedIs) {
  expect_broken({Action::run(0), Action::run(1), Action::replay(1)}, Rule::replayable, 2);
  expect_broken({Action::run(0), Action::run(1), Action::run(2), Action::replay(2)}, Rule::replayable, 3);
}

TEST(SimulateRules, InputsAreResident) {
  expect_broken({Action::drop(0), Action::run(0)}, Rule::resident, 1, 0);
  expect_broken({Action::run(0), Action::run(1), Action::drop(2), Action::run(2)}, Rule::resident, 3, 2);
  expect_broken({Action::run(0), Action::drop(0), Action::drop(1), Action::replay(0)}, Rule::resident, 3, 0);
}

TEST(SimulateRules, WhatIsDroppedOrPutIsResident) {
  expect_broken({Action::drop(1)}, Rule::resident, 0, 1);
  expect_broken({Action::run(0), Action::drop(1), Action::drop(1)}, Rule::resident, 2, 1);
  expect_broken({Action::put(1, 0)}, Rule::resident, 0, 1);
}

TEST(SimulateRules, WhatIsDroppedWhileHeldIsNotDroppedAgain) {
  Trace trace = example();
  trace.values[1].held = Stretch{0, 2};
  expect_broken(trace, Plan{plenty, {}, {Action::run(0), Action::drop(1), Action::drop(1)}}, Rule::resident, 2, 1);
}

TEST(SimulateRules, AValueIsResidentWhenItsStretchStarts) {
  Trace trace = example();
  trace.values[1].held = Stretch{2, 2};
  trace.moments[2].needs = {2};
  expect_broken(trace, Plan{plenty, {}, {Action::run(0), Action::run(1), Action::drop(1), Action::run(2)}},
                Rule::resident, 3, 1);
}

TEST(SimulateRules, AValueThatHasNotArrivedIsNotResident) {
  Trace trace = example();
  trace.values.push_back({});
  trace.values[3].held = Stretch{1, 1};
  expect_broken(trace, Plan{plenty, {}, {Action::run(0), Action::drop(3)}}, Rule::resident, 1, 3);
}

TEST(SimulateRules, AnInputTakenOverIsNotResidentAnyMore) {
  SmallTrace small;
  small.run({}, {10});
  small.run({0}, {10});
  small.trace.values[1].takes_over = 0;
  expect_broken(small.trace, Plan{plenty, {}, {Action::run(0), Action::run(1), Action::drop(0)}}, Rule::resident, 2, 0);
}

TEST(SimulateRules, WhatIsResidentIsNotGot) {
  expect_broken({Action::run(0), Action::put(1, 0), Action::get(1, 0)}, Rule::not_resident, 2, 1);
  Trace trace = example();
  trace.values[1].held = Stretch{0, 2};  // dropped, but the program holds it
  const std::vector<Action> actions = {Action::run(0), Action::put(1, 0), Action::drop(1), Action::get(1, 0)};
  expect_broken(trace, Plan{plenty, one_tier(), actions}, Rule::not_resident, 3, 1);
}

TEST(SimulateRules, TiersTakeAndHaveTheirValuesOnly) {
  expect_broken({Action::run(0), Action::put(0, 0)}, Rule::in_tier, 1, 0);                     // not taken
  expect_broken({Action::run(0), Action::put(1, 0), Action::put(1, 0)}, Rule::in_tier, 2, 1);  // there already
  expect_broken({Action::run(0), Action::drop(1), Action::get(1, 0)}, Rule::in_tier, 2, 1);    // never put
  expect_broken({Action::run(0), Action::get(0, 0)}, Rule::in_tier, 1, 0);                     // not taken
}

TEST(SimulateRules, CapacitiesAreKept) {
  expect_broken({Action::run(0), Action::run(1), Action::put(2, 0)}, Rule::capacity, 2, 2);
  std::vector<Tier> tiers = one_tier();
  tiers[0].capacity = 23;
  expect_broken(example(), Plan{plenty, tiers, {Action::run(0), Action::run(1), Action::put(1, 0), Action::put(2, 0)}},
                Rule::capacity, 3, 2);
  tiers[0].capacity = 24;
  const Plan fits{
      plenty, tiers, {Action::run(0), Action::run(1), Action::put(1, 0), Action::put(2, 0), Action::run(2)}};
  EXPECT_TRUE(simulate(example(), fits).valid());
}

TEST(SimulateRules, LiveBytesStayInTheBudget) {
  const std::vector<Action> actions = {Action::run(0), Action::run(1), Action::run(2)};
  expect_broken(example(), Plan{34, {}, actions}, Rule::budget, 1, {});
  expect_broken(example(), Plan{14, {}, actions}, Rule::budget, 0, {});
  EXPECT_TRUE(simulate(example(), Plan{34, {}, actions}, {.check_budget = false}).valid());
  const auto result = simulate(example(), Plan{34, {}, actions});
  EXPECT_NE(result.broken->sentence.find("35 bytes are live, 1 above the budget of 34"), std::string::npos)
      << result.broken->sentence;
}

TEST(SimulateRules, WhatIsDroppedBeforeAnythingHasRunIsNotHeldAgainstTheBudget) {
  SmallTrace small;
  small.outside(100);
  small.outside(100);
  small.event({});
  const std::vector<Action> actions = {Action::drop(0), Action::drop(1), Action::run(0)};
  const auto result = simulate(small.trace, Plan{0, {}, actions});
  EXPECT_TRUE(result.valid());
  EXPECT_EQ(result.peak, 0);
  expect_broken(small.trace, Plan{99, {}, {Action::drop(0), Action::run(0), Action::drop(1)}}, Rule::budget, 1, {});
}

TEST(SimulateRules, EveryMomentHasRunInTheEnd) {
  expect_broken({Action::run(0), Action::run(1)}, Rule::complete, 2);
  expect_broken({}, Rule::complete, 0);
}

}  // namespace
}  // namespace reprise
