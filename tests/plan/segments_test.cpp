#include "reprise/plan/segments.h"

#include <gtest/gtest.h>

#include "plan/first_backward_moment.h"
#include "plan/planners.h"
#include "reprise/trace/error.h"
#include "support/chains.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise::segments_test {
using namespace internal;
namespace {

using testing::SmallTrace;

const SimulateOptions any_budget{.record_live = false, .check_budget = false};

std::vector<Stretch> ranges(const Segments& segments) {
  return segments.ranges();
}

TEST(Segments, UniformOnesHaveEqualLengthsAndTheLastTakesTheRemainder) {
  EXPECT_EQ(ranges(Segments::uniform(10, 2)), (std::vector<Stretch>{{0, 4}, {5, 9}}));
  EXPECT_EQ(ranges(Segments::uniform(8, 1)), (std::vector<Stretch>{{0, 7}}));
  EXPECT_EQ(ranges(Segments::uniform(10, 3)), (std::vector<Stretch>{{0, 2}, {3, 5}, {6, 9}}));
  EXPECT_EQ(ranges(Segments::uniform(3, 3)), (std::vector<Stretch>{{0, 0}, {1, 1}, {2, 2}}));
}

TEST(Segments, ZeroOperatorsOrZeroSegmentsAreNone) {
  EXPECT_TRUE(Segments::uniform(0, 3).ranges().empty());
  EXPECT_TRUE(Segments::uniform(7, 0).ranges().empty());
  EXPECT_EQ(Segments::uniform(7, 0).mask(), std::vector<bool>(7, false));
}

TEST(Segments, MoreSegmentsThanOperatorsAreAnError) {
  EXPECT_THROW((void)Segments::uniform(3, 4), BadOption);
  EXPECT_THROW((void)Segments::uniform(3, -1), BadOption);
  EXPECT_THROW((void)Segments::uniform(-3, 1), BadOption);
}

TEST(Segments, RangesThatAreReversedOrOutOfRangeAreAnError) {
  EXPECT_THROW(Segments(5, {{3, 2}}), BadOption);
  EXPECT_THROW(Segments(5, {{-1, 2}}), BadOption);
  EXPECT_THROW(Segments(5, {{1, 5}}), BadOption);
}

TEST(Segments, OverlappingRangesAreMergedAndNeighboursAreNot) {
  EXPECT_EQ(ranges(Segments(10, {{4, 6}, {0, 2}, {5, 8}})), (std::vector<Stretch>{{0, 2}, {4, 8}}));
  EXPECT_EQ(ranges(Segments(10, {{0, 9}, {3, 4}})), (std::vector<Stretch>{{0, 9}}));
  EXPECT_EQ(ranges(Segments(10, {{0, 4}, {5, 9}})), (std::vector<Stretch>{{0, 4}, {5, 9}}));
}

TEST(Segments, TheMaskAndContainsAgree) {
  const Segments segments(5, {{1, 3}});
  EXPECT_EQ(segments.mask(), (std::vector<bool>{false, true, true, true, false}));
  for (Id op = 0; op < 5; ++op) EXPECT_EQ(segments.contains(op), segments.mask()[op]) << op;
  EXPECT_FALSE(segments.contains(-1));
  EXPECT_FALSE(segments.contains(5));
}

TEST(Segments, EveryNOperatorsShareASegment) {
  EXPECT_EQ(ranges(Segments::every(10, 4)), (std::vector<Stretch>{{0, 3}, {4, 7}, {8, 9}}));
  EXPECT_EQ(ranges(Segments::every(3, 100)), (std::vector<Stretch>{{0, 2}}));
  EXPECT_THROW((void)Segments::every(3, 0), BadOption);
}

TEST(FirstBackwardMoment, IsTheFirstEvent) {
  SmallTrace made;
  const Id x = made.outside(4);
  made.run({x}, {4});
  made.event({1});
  made.run({x}, {4});
  EXPECT_EQ(first_backward_moment(made.trace), 1);
}

TEST(FirstBackwardMoment, IsTheFirstEventAlsoIfAnOperatorStandsForIt) {
  SmallTrace made;
  made.run({}, {4});
  made.event_with_workspace({0}, 8);
  made.event({0});
  EXPECT_EQ(first_backward_moment(made.trace), 1);
}

TEST(FirstBackwardMoment, WithoutEventsIsWhereMostBytesAreLive) {
  EXPECT_EQ(first_backward_moment(testing::chain_trace(testing::equal_layers(5))),
            4);  // states 0 to 5 are there, 5 goes at once
  EXPECT_EQ(first_backward_moment(Trace{}), 0);
}

// Four layers of 10 bytes; every event of backward needs what its layer read.
Trace four_layers() {
  SmallTrace made;
  Id state = made.outside(10);
  for (int k = 0; k < 4; ++k) {
    made.run({state}, {10});
    state = made.trace.value_count() - 1;
  }
  for (Id v = 4; v >= 1; --v) made.event({v});
  return made.trace;
}

TEST(SegmentPlan, EvictsWhatStaysInsideASegmentAndKeepsWhatCrosses) {
  const Trace trace = four_layers();
  const SegmentPlan made(trace, Segments::uniform(4, 2), 100);
  EXPECT_FALSE(made.evicts(0));  // from outside
  EXPECT_TRUE(made.evicts(1));
  EXPECT_FALSE(made.evicts(2));  // crosses
  EXPECT_TRUE(made.evicts(3));
  EXPECT_TRUE(made.evicts(4));
  using A = Action;
  EXPECT_EQ(made.plan().actions,
            (std::vector<Action>{A::run(0), A::run(1), A::drop(1), A::run(2), A::run(3), A::drop(3), A::drop(4),
                                 A::replay(2), A::replay(3), A::run(4), A::drop(4), A::run(5), A::drop(3), A::run(6),
                                 A::drop(2), A::replay(0), A::drop(0), A::run(7), A::drop(1)}));
  EXPECT_TRUE(simulate(trace, made.plan(), any_budget).valid());
}

TEST(SegmentPlan, KeepsWhatMayNotBeReplayedAndWhatTheProgramHolds) {
  Trace trace = four_layers();
  trace.operators[0].replayable = false;
  trace.values[3].held = Stretch{2, 5};
  const SegmentPlan made(trace, Segments::uniform(4, 1), 100);
  EXPECT_FALSE(made.evicts(1));
  EXPECT_TRUE(made.evicts(2));
  EXPECT_FALSE(made.evicts(3));
  EXPECT_TRUE(made.evicts(4));
  EXPECT_TRUE(simulate(trace, made.plan(), any_budget).valid());
}

TEST(SegmentPlan, RecomputesThroughAnOperatorInPlace) {
  Trace trace = four_layers();
  trace.values[2].takes_over = 1;  // what the last event needs is gone when operator 1 has run
  trace.moments[7].needs = {2};
  const SegmentPlan made(trace, Segments::uniform(4, 1), 100);
  const Simulation simulation = simulate(trace, made.plan(), any_budget);
  EXPECT_TRUE(simulation.valid()) << simulation.broken->sentence;
  EXPECT_EQ(simulation.replays, 4u);
}

TEST(SegmentPlan, ReplaysNothingThatBackwardDoesNotNeed) {
  Trace trace = four_layers();
  for (Id m = 4; m < 8; ++m) trace.moments[m].needs = {2};
  const Simulation simulation = simulate(trace, SegmentPlan(trace, Segments::uniform(4, 1), 100).plan(), any_budget);
  EXPECT_TRUE(simulation.valid());
  EXPECT_EQ(simulation.replays, 2u);
}

TEST(SegmentPlan, WithoutSegmentsRunsEverythingOnce) {
  const Trace trace = four_layers();
  const Simulation simulation = simulate(trace, SegmentPlan(trace, Segments::uniform(4, 0), 100).plan(), any_budget);
  EXPECT_TRUE(simulation.valid());
  EXPECT_EQ(simulation.replays, 0u);
}

TEST(SegmentPlan, RefusesSegmentsOverMoreOperatorsThanTheTraceHas) {
  EXPECT_THROW(SegmentPlan(four_layers(), Segments::uniform(5, 1), 100), BadOption);
}

TEST(PlanSegments, SaysWhatItNeeds) {
  const Trace trace = four_layers();
  EXPECT_THROW((void)plan_segments(trace, {}), BadOption);
  PlanOptions both;
  both.planner = SegmentsPlanner{.count = 2, .ranges = {{0, 1}}};
  EXPECT_THROW((void)plan_segments(trace, both), BadOption);
  PlanOptions every;
  every.planner = EveryPlanner{0};
  EXPECT_THROW((void)plan_every(trace, every), BadOption);
}

TEST(PlanSegments, IsValidOnRandomTraces) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    testing::RandomTraceOptions form;
    form.moments = 5 + static_cast<int>(seed % 40);
    form.events = seed % 3 == 0 ? 0 : 0.08;
    form.in_place = seed % 2 ? 0.15 : 0.4;
    for (const Trace& trace : {testing::random_trace(seed, form), testing::random_graph(seed, form.moments),
                               testing::random_training_step(seed, form.moments / 2)}) {
      const Id operators = forward_operators(trace);
      testing::Random random(seed);
      std::vector<PlanOptions> all(4);
      all[0].planner = SegmentsPlanner{.count = operators == 0 ? 0 : random.between(0, operators)};
      all[1].planner = EveryPlanner{random.between(1, 6)};
      SegmentsPlanner by_ranges;
      for (int i = 0; i < 3 && operators > 0; ++i) {
        const Id first = random.between(0, operators - 1);
        by_ranges.ranges.push_back({first, random.between(first, operators - 1)});
      }
      all[2].planner = by_ranges;
      all[3].planner = SegmentsPlanner{.count = std::min<Id>(operators, 1)};
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i == 2 && by_ranges.ranges.empty()) continue;
        const auto plan = i == 1 ? plan_every(trace, all[i]) : plan_segments(trace, all[i]);
        const Simulation simulation = simulate(trace, *plan, any_budget);
        ASSERT_TRUE(simulation.valid()) << "seed " << seed << ": " << simulation.broken->sentence;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::segments_test
