// The trace of a pass: moments, values, operators in place, other bytes, tiers.
#include "torch/plans/trace_builder.h"

#include <gtest/gtest.h>

#include "torch/plans/made_pass.h"

namespace reprise::internal {
namespace {

using testing::ChainPass;
using testing::MadePass;

TEST(TraceBuilder, HasAMomentForEachOperatorAndEachEvent) {
  ChainPass chain;
  const Trace trace = build_trace(chain.made.pass(), false).trace;
  ASSERT_EQ(trace.moment_count(), 5);
  EXPECT_EQ(trace.moments[1].runs, 1);
  EXPECT_FALSE(trace.moments[3].runs);
  EXPECT_EQ(trace.moments[3].name, "back of b");
  EXPECT_EQ(trace.operators[0].name, "aten::mul.Tensor");
  EXPECT_EQ(trace.operators[0].cost, 10);
  EXPECT_EQ(trace.moments[3].cost, 5);
}

TEST(TraceBuilder, LeavesOutValuesFromOutside) {
  ChainPass chain;
  const Trace trace = build_trace(chain.made.pass(), false).trace;
  ASSERT_EQ(trace.value_count(), 3);
  EXPECT_EQ(trace.values[0].bytes, 100);
  EXPECT_TRUE(trace.operators[0].inputs.empty());
  EXPECT_EQ(trace.operators[1].inputs, (std::vector<Id>{0}));
  EXPECT_EQ(trace.moments[4].needs, (std::vector<Id>{0}));
}

TEST(TraceBuilder, HoldsWhatTheProgramHoldsUntilItIsReleased) {
  ChainPass chain;
  const Trace trace = build_trace(chain.made.pass(), false).trace;
  ASSERT_TRUE(trace.values[1].held);
  EXPECT_EQ(trace.values[1].held->first, 1);
  EXPECT_EQ(trace.values[1].held->last, 2);
  MadePass kept;
  (void)kept.run({kept.outside(8)}, 8);
  kept.event("end", {});
  EXPECT_EQ(build_trace(kept.pass(), false).trace.values[0].held->last, 1) << "never released: until the last moment";
}

TEST(TraceBuilder, DoesNotReplayWhatCannotBeReplayedOrIsToBeKept) {
  MadePass made;
  const Id x = made.outside(8);
  (void)made.run({x}, 8);
  (void)made.run({x}, 8);
  made.why_not_replayable("it draws in its own way");
  (void)made.run({x}, 8);
  made.choice(Choice::keep);
  const Trace trace = build_trace(made.pass(), false).trace;
  EXPECT_TRUE(trace.operators[0].replayable);
  EXPECT_FALSE(trace.operators[1].replayable);
  EXPECT_FALSE(trace.operators[2].replayable);
}

TEST(TraceBuilder, JoinsAnOperatorInPlaceWithTheOneWhoseValueNothingElseNeeds) {
  MadePass made;
  const Id x = made.outside(100), a = made.run({x}, 100), b = made.run_in_place(a);
  made.event("back", {b});
  const Trace trace = build_trace(made.pass(), false).trace;
  ASSERT_EQ(trace.value_count(), 1) << "the value between is none of the trace's";
  EXPECT_TRUE(trace.operators[0].outputs.empty());
  EXPECT_FALSE(trace.operators[0].replayable);
  EXPECT_EQ(trace.operators[1].cost, 20) << "of both";
  EXPECT_EQ(trace.moments[1].other, 0);
}

TEST(TraceBuilder, TakesTheStorageOverWhereTheValueBeforeIsNeededLastByTheOperatorThatWrites) {
  MadePass made;
  const Id x = made.outside(100), a = made.run({x}, 100);
  (void)made.run({a}, 10);
  const Id b = made.run_in_place(a);
  made.event("back", {b});
  const Trace trace = build_trace(made.pass(), false).trace;
  ASSERT_EQ(trace.value_count(), 3);
  EXPECT_EQ(trace.values[2].takes_over, 0);
  EXPECT_EQ(trace.values[0].held->last, 2);
}

TEST(TraceBuilder, CountsWorkspaceAsWhatWasThereBesideTheResults) {
  MadePass made;
  (void)made.run({made.outside(8)}, 100);
  made.other(0, 1000, 1000 + 100 + 70);
  const Trace trace = build_trace(made.pass(), false).trace;
  EXPECT_EQ(trace.moments[0].other, 1000);
  EXPECT_EQ(trace.operators[0].workspace, 70);
}

TEST(TraceBuilder, CountsWhatANodeOfBackwardNeedsForItselfAsItsWorkspace) {
  ChainPass chain;
  chain.made.other(4, 1000, 1300);
  const Trace trace = build_trace(chain.made.pass(), false).trace;
  EXPECT_EQ(trace.moments[4].other, 1000);
  EXPECT_EQ(trace.workspace(4), 300);
  EXPECT_EQ(trace.label(4), "back of a");
  EXPECT_EQ(trace.inputs(4), (std::vector<Id>{0}));
  EXPECT_EQ(trace.cost(4), 5);
  EXPECT_FALSE(trace.replayable(4));
  EXPECT_TRUE(trace.is_event(4));
  EXPECT_FALSE(trace.moments[3].runs) << "one without is an event";
}

// x -> a -> b -> c, larger, with a disk that is cheaper than the operators.
TEST(TraceBuilder, OffersADiskForWhatCanBeReplayedAndIsWorthAFile) {
  MadePass made;
  const Id x = made.outside(1 << 20), a = made.run({x}, 1 << 20), small = made.run({a}, 64);
  const Id kept = made.run({a}, 1 << 20);
  made.choice(Choice::keep);
  made.event("back", {a, small, kept});
  const TierCosts terms{.capacity = 3 << 20,
                        .put = {.caller = 1, .cpu = {5, 1e-6}, .time = {7, 3e-6}},
                        .get = {.caller = 2, .cpu = {3, 2e-6}, .time = {4, 5e-6}},
                        .remove = {.caller = 0.5, .cpu = {0.25, 0}, .time = {0.75, 1e-6}}};
  const Trace trace = build_trace(made.pass(), OfferedTiers(false, terms)).trace;
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
  EXPECT_TRUE(build_trace(made.pass(), false).trace.tiers.empty());
}

}  // namespace
}  // namespace reprise::internal
