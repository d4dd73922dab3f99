// Online heuristics and tiers: the oracle packs where that is cheaper than replaying.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/search/best.h"
#include "plan/search/online_scores.h"
#include "reprise/plan/planner.h"
#include "support/cases.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::read_aloud;
using testing::SmallTrace;

// A mask that is expensive to make and small when packed waits for the last event while something large comes and goes.
Trace masked(double put_cost, bool replayable = true) {
  SmallTrace small;
  small.run({}, {80}, 20);
  small.run({}, {80}, 1);
  small.event({1}, 1);
  small.event({0}, 1);
  small.trace.operators[0].replayable = replayable;
  small.trace.tiers = {{"packed", std::nullopt, true, {{0, 3, put_cost, 1}}}};
  check(small.trace);
  return small.trace;
}

// By the first oracle; nothing if it got stuck.
std::optional<Plan> plan_online(const Trace& trace, Bytes budget, OnlineScore score = oracle_scores().front()) {
  const Timeline timeline(trace);
  const Problem problem(trace, timeline, budget);
  const auto nodes = simulate_online(problem, first_uses(problem), score, {});
  if (!nodes) return std::nullopt;
  Plan plan = to_plan(problem, *nodes);
  const Simulation simulation = simulate(trace, plan);
  EXPECT_TRUE(simulation.valid()) << simulation.broken->sentence;
  return plan;
}

int count(const Plan& plan, Action::Kind kind) {
  return static_cast<int>(
      std::count_if(plan.actions.begin(), plan.actions.end(), [&](const Action& a) { return a.kind == kind; }));
}

TEST(OnlinePacking, IsChosenWhereItIsCheaperThanReplaying) {
  const auto plan = plan_online(masked(2), 90);
  ASSERT_TRUE(plan);
  EXPECT_EQ(count(*plan, Action::Kind::put), 1) << read_aloud(*plan);
  EXPECT_EQ(count(*plan, Action::Kind::get), 1);
  EXPECT_EQ(count(*plan, Action::Kind::replay), 0);
}

TEST(OnlinePacking, IsNotChosenWhereReplayingIsCheaper) {
  const auto plan = plan_online(masked(30), 90);
  ASSERT_TRUE(plan);
  EXPECT_EQ(count(*plan, Action::Kind::put), 0) << read_aloud(*plan);
  EXPECT_EQ(count(*plan, Action::Kind::replay), 1);
}

TEST(OnlinePacking, NeedsRoomForTheCopyBesideTheValue) {
  const auto plan = plan_online(masked(2), 82);
  ASSERT_TRUE(plan);
  EXPECT_EQ(count(*plan, Action::Kind::put), 0) << read_aloud(*plan);
}

TEST(OnlinePacking, BringsBackWhatCannotBeReplayed) {
  const auto plan = plan_online(masked(1000, false), 90);
  EXPECT_FALSE(plan) << "it costs more than the heuristic may spend";
  const auto cheaper = plan_online(masked(5, false), 90);
  ASSERT_TRUE(cheaper);
  EXPECT_EQ(count(*cheaper, Action::Kind::get), 1) << read_aloud(*cheaper);
}

TEST(OnlinePacking, IsNothingForTheKnownHeuristics) {
  const auto plan = plan_online(masked(2), 90, {OnlineScore::Kind::dtr});
  ASSERT_TRUE(plan);
  EXPECT_EQ(count(*plan, Action::Kind::put), 0) << read_aloud(*plan);
}

}  // namespace
}  // namespace reprise
