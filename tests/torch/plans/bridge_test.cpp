// The bridge: a pass as a trace, and a plan of that trace as a executable for the executor.
#include "torch/plans/bridge.h"

#include <gtest/gtest.h>

#include "reprise/simulate/simulate.h"
#include "torch/plans/made_pass.h"

namespace reprise::internal {
namespace {

using testing::MadePass;
using StepKind = ExecutablePlan::Step::Kind;

// x -> a -> b -> c, and backward needs b, then a.
struct Chain {
  MadePass made;
  Id x = made.outside(100), a = made.run({x}, 100), b = made.run({a}, 200), c = made.run({b}, 50);
  Chain() {
    made.event("back of b", {b});
    made.event("back of a", {a});
    for (const auto& [value, moment] : {std::pair{a, 1}, {b, 2}, {c, 2}}) made.release(value, moment);
  }
};

std::shared_ptr<const ExecutablePlan> executable_of(const Bridge& bridge, const Plan& plan) {
  return bridge.executable(plan, simulate(bridge.trace(), plan), 0);
}

TEST(Bridge, HasAMomentForEachOperatorAndEachEvent) {
  Chain chain;
  const Bridge bridge(chain.made.pass(), false);
  const Trace& trace = bridge.trace();
  ASSERT_EQ(trace.moment_count(), 5);
  EXPECT_EQ(trace.moments[1].runs, 1);
  EXPECT_FALSE(trace.moments[3].runs);
  EXPECT_EQ(trace.moments[3].name, "back of b");
  EXPECT_EQ(trace.operators[0].name, "aten::mul.Tensor");
  EXPECT_EQ(trace.operators[0].cost, 10);
  EXPECT_EQ(trace.moments[3].cost, 5);
}

TEST(Bridge, LeavesOutValuesFromOutside) {
  Chain chain;
  const Bridge bridge(chain.made.pass(), false);
  const Trace& trace = bridge.trace();
  ASSERT_EQ(trace.value_count(), 3);
  EXPECT_EQ(trace.values[0].bytes, 100);
  EXPECT_TRUE(trace.operators[0].inputs.empty());
  EXPECT_EQ(trace.operators[1].inputs, (std::vector<Id>{0}));
  EXPECT_EQ(trace.moments[4].needs, (std::vector<Id>{0}));
}

TEST(Bridge, HoldsWhatTheProgramHoldsUntilItLetsGo) {
  Chain chain;
  const Trace trace = Bridge(chain.made.pass(), false).trace();
  ASSERT_TRUE(trace.values[1].held);
  EXPECT_EQ(trace.values[1].held->first, 1);
  EXPECT_EQ(trace.values[1].held->last, 2);
  MadePass kept;
  (void)kept.run({kept.outside(8)}, 8);
  kept.event("end", {});
  EXPECT_EQ(Bridge(kept.pass(), false).trace().values[0].held->last, 1) << "never released: until the last moment";
}

TEST(Bridge, DoesNotReplayWhatHasAnObstacleOrIsToBeKept) {
  MadePass made;
  const Id x = made.outside(8);
  (void)made.run({x}, 8);
  (void)made.run({x}, 8);
  made.why_not_replayable("it draws in its own way");
  (void)made.run({x}, 8);
  made.choice(Choice::keep);
  const Trace trace = Bridge(made.pass(), false).trace();
  EXPECT_TRUE(trace.operators[0].replayable);
  EXPECT_FALSE(trace.operators[1].replayable);
  EXPECT_FALSE(trace.operators[2].replayable);
}

TEST(Bridge, JoinsAnOperatorInPlaceWithTheOneWhoseValueNobodyElseNeeds) {
  MadePass made;
  const Id x = made.outside(100), a = made.run({x}, 100), b = made.run_in_place(a);
  made.event("back", {b});
  const Bridge bridge(made.pass(), false);
  const Trace& trace = bridge.trace();
  ASSERT_EQ(trace.value_count(), 1) << "the value between is none of the trace's";
  EXPECT_TRUE(trace.operators[0].outputs.empty());
  EXPECT_FALSE(trace.operators[0].replayable);
  EXPECT_EQ(trace.operators[1].cost, 20) << "of both";
  EXPECT_EQ(trace.moments[1].other, 0);
}

TEST(Bridge, GivesTheStorageOnWhereTheValueBeforeIsNeededLastByTheOperatorThatWrites) {
  MadePass made;
  const Id x = made.outside(100), a = made.run({x}, 100);
  (void)made.run({a}, 10);
  const Id b = made.run_in_place(a);
  made.event("back", {b});
  const Trace trace = Bridge(made.pass(), false).trace();
  ASSERT_EQ(trace.value_count(), 3);
  EXPECT_EQ(trace.values[2].takes_over, 0);
  EXPECT_EQ(trace.values[0].held->last, 2);
}

TEST(Bridge, CountsWorkspaceAsWhatWasThereBesideTheResults) {
  MadePass made;
  (void)made.run({made.outside(8)}, 100);
  made.other(1000, 1000 + 100 + 70);
  const Trace trace = Bridge(made.pass(), false).trace();
  EXPECT_EQ(trace.moments[0].other, 1000);
  EXPECT_EQ(trace.operators[0].workspace, 70);
}

TEST(Bridge, CountsWhatANodeOfBackwardNeedsForItselfAsItsWorkspace) {
  Chain chain;
  chain.made.other(1000, 1300);
  const Trace trace = Bridge(chain.made.pass(), false).trace();
  EXPECT_EQ(trace.moments[4].other, 1000);
  EXPECT_EQ(trace.workspace(4), 300);
  EXPECT_EQ(trace.label(4), "back of a");
  EXPECT_EQ(trace.inputs(4), (std::vector<Id>{0}));
  EXPECT_EQ(trace.cost(4), 5);
  EXPECT_FALSE(trace.replayable(4));
  EXPECT_TRUE(trace.is_event(4));
  EXPECT_FALSE(trace.moments[3].runs) << "one without is an event";
}

TEST(Bridge, WritesAPlanThatKeepsEverythingAsAScriptThatOnlyEnds) {
  Chain chain;
  const Bridge bridge(chain.made.pass(), false);
  const auto executable = executable_of(bridge, keep_everything(bridge.trace()));
  EXPECT_EQ(executable->moments(), 5);
  EXPECT_EQ(executable->added_cost, 0);
  EXPECT_EQ(executable->plain_cost, 40);
  EXPECT_TRUE(executable->replays.empty());
  for (const ExecutablePlan::Step& step : executable->steps) EXPECT_EQ(step.kind, StepKind::end);
  EXPECT_EQ(executable->events[3], std::hash<std::string>()("back of b"));
  EXPECT_TRUE(executable->owned[chain.a]) << "backward needs it after the program has let go";
  EXPECT_FALSE(executable->owned[chain.c]);
}

TEST(Bridge, WritesReplaysInRecipesAndValuesOfThePass) {
  Chain chain;
  const Bridge bridge(chain.made.pass(), false);
  PlanOptions options;
  options.budget = floor_of(bridge.trace()).bytes;
  options.moves = 2000;
  const PlanResult result = make_plan(bridge.trace(), options);
  ASSERT_TRUE(result.has_plan());
  const auto executable = executable_of(bridge, result.plan);
  EXPECT_LE(executable->peak, options.budget);
  for (const ExecutablePlan::Replay& replay : executable->replays) {
    ASSERT_EQ(replay.operators.size(), 1u);
    EXPECT_EQ(replay.outputs, (std::vector<Id>{chain.made.recipes().outputs_of(replay.operators[0])[0].value}));
  }
  for (Id m = 0; m < executable->moments(); ++m) EXPECT_GE(executable->most_other[m].between, 0) << "there were none";
}

// Two copies are packed, and the first is unpacked twice.
TEST(Bridge, LetsAPackedCopyGoWithItsLastUnpacking) {
  MadePass made;
  const Id a = made.run({}, 4096);
  for (int i = 0; i < 3; ++i) made.event("back", {a});
  const std::vector<std::byte> zeros(4096);
  made.packs(a, packable(zeros, 4, false).value());
  made.release(a, 0);
  const Bridge bridge(made.pass(), true);
  Plan plan{1 << 20, bridge.trace().tiers, {}};
  plan.actions = {Action::run(0),    Action::put(0, 0), Action::drop(0), Action::get(0, 0), Action::run(1),
                  Action::drop(0),   Action::get(0, 0), Action::run(2),  Action::put(0, 0), Action::drop(0),
                  Action::get(0, 0), Action::run(3),    Action::drop(0)};
  const auto executable = executable_of(bridge, plan);
  std::vector<StepKind> unpacked;
  for (const ExecutablePlan::Step& step : executable->steps) {
    if (step.kind == StepKind::unpack || step.kind == StepKind::unpack_last) unpacked.push_back(step.kind);
  }
  EXPECT_EQ(unpacked, (std::vector{StepKind::unpack, StepKind::unpack_last, StepKind::unpack_last}));
}

// x -> a -> b -> c, larger, with a disk that is cheaper than the operators.
TEST(Bridge, OffersADiskForWhatCanBeReplayedAndIsWorthAFile) {
  MadePass made;
  const Id x = made.outside(1 << 20), a = made.run({x}, 1 << 20), small = made.run({a}, 64);
  const Id kept = made.run({a}, 1 << 20);
  made.choice(Choice::keep);
  made.event("back", {a, small, kept});
  const TierCosts terms{.capacity = 3 << 20,
                        .put = {.caller = 1, .cpu = {5, 1e-6}, .time = {7, 3e-6}},
                        .get = {.caller = 2, .cpu = {3, 2e-6}, .time = {4, 5e-6}},
                        .remove = {.caller = 0.5, .cpu = {0.25, 0}, .time = {0.75, 1e-6}}};
  const Trace trace = Bridge(made.pass(), OfferedTiers(false, terms)).trace();
  ASSERT_EQ(trace.tiers.size(), 1u);
  const Tier& disk = trace.tiers[0];
  EXPECT_EQ(disk.name, "disk");
  EXPECT_FALSE(disk.in_budget);
  EXPECT_EQ(disk.capacity, 3 << 20);
  ASSERT_EQ(disk.entries.size(), 1u);
  EXPECT_EQ(disk.entries[0].value, 0);
  EXPECT_EQ(disk.entries[0].bytes, 1 << 20);
  EXPECT_DOUBLE_EQ(disk.entries[0].put_cost, 1 + 5 + 0.5 + 0.25 + 1e-6 * (1 << 20)) << "the file goes some time, too";
  EXPECT_DOUBLE_EQ(disk.entries[0].get_cost, 2 + 3 + 2e-6 * (1 << 20));
  EXPECT_DOUBLE_EQ(disk.entries[0].put_time, 7 + 3e-6 * (1 << 20));
  EXPECT_DOUBLE_EQ(disk.entries[0].get_time, 4 + 0.75 + 6e-6 * (1 << 20)) << "the thread removes files, too";
  EXPECT_TRUE(disk.overlaps());
  EXPECT_FALSE(disk.duplex);
  EXPECT_TRUE(Bridge(made.pass(), false).trace().tiers.empty());
}

TEST(Bridge, WritesPutsAndGetsOfTheDiskInValuesOfThePass) {
  MadePass made;
  const Id x = made.outside(8), a = made.run({x}, 8192), b = made.run({x}, 8192);
  made.event("back of b", {b});
  made.event("back of a", {a});
  for (const Id value : {a, b}) made.release(value, value - 1);
  const Bridge bridge(made.pass(), OfferedTiers(false, TierCosts{}));
  const Plan plan{16384,
                  bridge.trace().tiers,
                  {Action::run(0), Action::put(0, 0), Action::drop(0), Action::run(1), Action::run(2), Action::drop(1),
                   Action::get(0, 0), Action::run(3), Action::drop(0)}};
  ASSERT_TRUE(simulate(bridge.trace(), plan).valid()) << simulate(bridge.trace(), plan).broken->sentence;
  const auto executable = executable_of(bridge, plan);
  std::vector<std::pair<StepKind, Id>> steps;
  for (const ExecutablePlan::Step& step : executable->steps) steps.emplace_back(step.kind, step.target);
  EXPECT_EQ(steps,
            (std::vector<std::pair<StepKind, Id>>{
                {StepKind::put, a}, {StepKind::drop, a}, {StepKind::end, b}, {StepKind::get, a}, {StepKind::end, a}}));
}

// All steps are reached by walking through the moments, each once and in order.
TEST(Bridge, PutsEveryStepOfTheScriptBeforeOrAfterOneMoment) {
  Chain chain;
  const Bridge bridge(chain.made.pass(), false);
  PlanOptions options;
  options.budget = floor_of(bridge.trace()).bytes;
  options.moves = 2000;
  const auto executable = executable_of(bridge, make_plan(bridge.trace(), options).plan);
  std::vector<const ExecutablePlan::Step*> walked;
  for (Id m = 0; m < executable->moments(); ++m) {
    for (const ExecutablePlan::Step& step : executable->steps_before(m)) walked.push_back(&step);
    for (const ExecutablePlan::Step& step : executable->steps_after(m)) walked.push_back(&step);
  }
  ASSERT_EQ(walked.size(), executable->steps.size());
  for (std::size_t i = 0; i < walked.size(); ++i) EXPECT_EQ(walked[i], &executable->steps[i]);
}

}  // namespace
}  // namespace reprise::internal
