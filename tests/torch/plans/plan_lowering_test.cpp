// A plan of the trace of a pass, as steps for the pass.
#include "torch/plans/plan_lowering.h"

#include <gtest/gtest.h>

#include "reprise/simulate/simulate.h"
#include "torch/plans/made_pass.h"

namespace reprise::internal {
namespace {

using testing::ChainPass;
using testing::MadePass;
using StepKind = ExecutablePlan::Step::Kind;

std::shared_ptr<const ExecutablePlan> lowered(const RecordedPass& pass, const PassTrace& traced, const Plan& plan) {
  return lower_plan(pass, traced, plan, simulate(traced.trace, plan), 0);
}

TEST(PlanLowering, WritesAPlanThatKeepsEverythingAsStepsThatOnlyEnd) {
  ChainPass chain;
  const PassTrace traced = build_trace(chain.made.pass(), false);
  const auto executable = lowered(chain.made.pass(), traced, keep_everything(traced.trace));
  EXPECT_EQ(executable->moments(), 5);
  EXPECT_EQ(executable->added_cost, 0);
  EXPECT_EQ(executable->plain_cost, 40);
  EXPECT_TRUE(executable->replays.empty());
  for (const ExecutablePlan::Step& step : executable->steps) EXPECT_EQ(step.kind, StepKind::end);
  EXPECT_EQ(executable->events[3], std::hash<std::string>()("back of b"));
  EXPECT_TRUE(executable->owned[chain.a]) << "backward needs it after the program has let go";
  EXPECT_FALSE(executable->owned[chain.c]);
}

TEST(PlanLowering, WritesReplaysInRecipesAndValuesOfThePass) {
  ChainPass chain;
  const PassTrace traced = build_trace(chain.made.pass(), false);
  PlanOptions options;
  options.budget = floor_of(traced.trace).bytes;
  options.moves = 2000;
  const PlanResult result = make_plan(traced.trace, options);
  ASSERT_TRUE(result.has_plan());
  const auto executable = lowered(chain.made.pass(), traced, result.plan);
  EXPECT_LE(executable->peak, options.budget);
  for (const ExecutablePlan::Replay& replay : executable->replays) {
    ASSERT_EQ(replay.operators.size(), 1u);
    EXPECT_EQ(replay.outputs, (std::vector<Id>{chain.made.recipes().outputs_of(replay.operators[0])[0].value}));
  }
  for (Id m = 0; m < executable->moments(); ++m) EXPECT_GE(executable->most_other[m].between, 0) << "there were none";
}

// Two copies are packed, and the first is unpacked twice.
TEST(PlanLowering, DropsAPackedCopyWithItsLastUnpacking) {
  MadePass made;
  const Id a = made.run({}, 4096);
  for (int i = 0; i < 3; ++i) made.event("back", {a});
  const std::vector<std::byte> zeros(4096);
  made.packs(a, packable(zeros, 4, false).value());
  made.release(a, 0);
  const PassTrace traced = build_trace(made.pass(), true);
  Plan plan{1 << 20, traced.trace.tiers, {}};
  plan.actions = {Action::run(0),    Action::put(0, 0), Action::drop(0), Action::get(0, 0), Action::run(1),
                  Action::drop(0),   Action::get(0, 0), Action::run(2),  Action::put(0, 0), Action::drop(0),
                  Action::get(0, 0), Action::run(3),    Action::drop(0)};
  const auto executable = lowered(made.pass(), traced, plan);
  std::vector<StepKind> unpacked;
  for (const ExecutablePlan::Step& step : executable->steps) {
    if (step.kind == StepKind::unpack || step.kind == StepKind::unpack_last) unpacked.push_back(step.kind);
  }
  EXPECT_EQ(unpacked, (std::vector{StepKind::unpack, StepKind::unpack_last, StepKind::unpack_last}));
}

TEST(PlanLowering, WritesPutsAndGetsOfTheDiskInValuesOfThePass) {
  MadePass made;
  const Id x = made.outside(8), a = made.run({x}, 8192), b = made.run({x}, 8192);
  made.event("back of b", {b});
  made.event("back of a", {a});
  for (const Id value : {a, b}) made.release(value, value - 1);
  const PassTrace traced = build_trace(made.pass(), OfferedTiers(false, TierCosts{}));
  const Plan plan{16384,
                  traced.trace.tiers,
                  {Action::run(0), Action::put(0, 0), Action::drop(0), Action::run(1), Action::run(2), Action::drop(1),
                   Action::get(0, 0), Action::run(3), Action::drop(0)}};
  ASSERT_TRUE(simulate(traced.trace, plan).valid()) << simulate(traced.trace, plan).broken->sentence;
  const auto executable = lowered(made.pass(), traced, plan);
  std::vector<std::pair<StepKind, Id>> steps;
  for (const ExecutablePlan::Step& step : executable->steps) steps.emplace_back(step.kind, step.target);
  EXPECT_EQ(steps,
            (std::vector<std::pair<StepKind, Id>>{
                {StepKind::put, a}, {StepKind::drop, a}, {StepKind::end, b}, {StepKind::get, a}, {StepKind::end, a}}));
}

// All steps are reached by walking through the moments, each once and in order.
TEST(PlanLowering, PutsEveryStepBeforeOrAfterOneMoment) {
  ChainPass chain;
  const PassTrace traced = build_trace(chain.made.pass(), false);
  PlanOptions options;
  options.budget = floor_of(traced.trace).bytes;
  options.moves = 2000;
  const auto executable = lowered(chain.made.pass(), traced, make_plan(traced.trace, options).plan);
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
