// A trace as a problem for searching: nodes, copies, and the bytes that no plan can change.
#include "plan/search/problem.h"

#include <gtest/gtest.h>

#include "plan/search/best.h"
#include "plan/search/timetable.h"
#include "reprise/plan/planner.h"
#include "support/cases.h"
#include "support/exhaustive.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::random_case;
using testing::small_case;
using testing::SmallTrace;

// An operator whose value waits for an event while a second one runs, and a tier for it.
SmallTrace with_tier(bool in_budget, std::optional<Bytes> capacity, Bytes bytes_there) {
  SmallTrace small;
  small.run({}, {8}, 5);
  small.run({}, {2}, 1);
  small.event({0, 1});
  Tier tier;
  tier.name = "tier";
  tier.in_budget = in_budget;
  tier.capacity = capacity;
  tier.entries = {{0, bytes_there, 3, 4}};
  small.trace.tiers = {tier};
  check(small.trace);
  return small;
}

TEST(Problem, MakesAPutAndAGetOfEveryEntryWorthHaving) {
  const SmallTrace small = with_tier(true, {}, 6);
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 100);
  ASSERT_EQ(problem.nodes, 3 + 2);
  const Id put = 3, get = 4, copy = 2;
  EXPECT_TRUE(problem.is_put(put));
  EXPECT_TRUE(problem.is_get(get));
  EXPECT_FALSE(problem.is_put(0));
  EXPECT_EQ(problem.action(put, false), Action::put(0, 0));
  EXPECT_EQ(problem.action(get, false), Action::get(0, 0));
  EXPECT_EQ(problem.node_of(Action::put(0, 0)), put);
  EXPECT_EQ(problem.node_of(Action::get(0, 0)), get);
  EXPECT_EQ(problem.cost[put], 3);
  EXPECT_EQ(problem.cost[get], 4);
  EXPECT_EQ(problem.bytes[copy], 6);
  EXPECT_EQ(problem.ways[0].size(), 2U) << "replay it, or get it";
}

TEST(Problem, CountsNoBytesOfATierOutsideTheBudget) {
  const SmallTrace small = with_tier(false, {}, 6);
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 100);
  EXPECT_EQ(problem.bytes[2], 0);
}

TEST(Problem, LeavesOutEntriesThatSaveNothingOrDoNotFit) {
  for (const SmallTrace& small : {with_tier(true, {}, 8), with_tier(true, 5, 6), with_tier(false, 5, 6)}) {
    const Timeline timeline(small.trace);
    const Problem problem(small.trace, timeline, 100);
    EXPECT_EQ(problem.nodes, 3);
    EXPECT_EQ(problem.node_of(Action::put(0, 0)), nowhere);
  }
}

// The search never has to look at a tier's capacity: what it may put there fits together.
TEST(Problem, NeverOffersMoreCopiesThanATierHasRoomFor) {
  for (std::uint64_t seed = 1; seed <= cases(50); ++seed) {
    const Trace trace = random_case(CaseKind::limited_tiers, seed, 15);
    const Timeline timeline(trace);
    const Problem problem(trace, timeline, 100);
    std::vector<Bytes> used(trace.tiers.size(), 0);
    for (Id node = problem.moments; node < problem.nodes; ++node) {
      const Action action = problem.action(node, false);
      if (action.kind == Action::Kind::put) used[action.tier] += trace.tiers[action.tier].find(action.target)->bytes;
    }
    for (std::size_t t = 0; t < used.size(); ++t) {
      if (trace.tiers[t].capacity) EXPECT_LE(used[t], *trace.tiers[t].capacity) << "seed " << seed;
    }
  }
}

TEST(Problem, HasTheBytesThatNoPlanCanChange) {
  SmallTrace small;
  const Id weight = small.outside(10, Stretch{0, 2});
  small.run({weight}, {4}, 1, 3);
  small.run({1}, {4});
  small.trace.values[2].takes_over = 1;
  small.event({2});
  small.trace.moments[1].other = 7;
  check(small.trace);
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 100);
  EXPECT_EQ(problem.at, (std::vector<Bytes>{10 + 3 + 4, 10 + 7, 10})) << "the second output adds nothing";
  EXPECT_EQ(problem.before, (std::vector<Bytes>{0, 10 + 7, 10})) << "the weight arrives with the first moment";
  EXPECT_FALSE(problem.held_while(weight, 0, false));
  EXPECT_TRUE(problem.held_while(weight, 0, true));
  EXPECT_TRUE(problem.held_while(weight, 1, false));
}

// What exhaustive search finds is a timetable as well, and needs as much. It costs as much, but for what happens beside
// the computation: a part of that is waited for, which no timetable knows.
TEST(PlansAsNodes, ComeBackFromPlansOfEveryKind) {
  int converted = 0, tried = 0;
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(40); ++seed, ++tried) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace trace = small_case(kind, seed);
      const auto lowest = testing::lowest_plan(trace);
      const auto cheapest = testing::cheapest_plan(trace, lowest.peak);
      ASSERT_TRUE(cheapest);
      const Timeline timeline(trace);
      const Problem problem(trace, timeline, lowest.peak);
      const auto nodes = to_nodes(problem, cheapest->plan);
      if (!nodes) continue;  // uses an entry that the problem leaves out
      ++converted;
      Timetable timetable(problem);
      ASSERT_TRUE(timetable.load(*nodes));
      ASSERT_TRUE(timetable.fits()) << timetable.peak() << ": " << testing::read_aloud(cheapest->plan);
      ASSERT_GE(timetable.cost(), cheapest->cost - 1e-9);
      const Problem hidden(trace, timeline, lowest.peak, Problem::LimitedTiers::serve_a_selection, 0);
      Timetable without_waiting(hidden);
      ASSERT_TRUE(without_waiting.load(*nodes));
      ASSERT_LE(without_waiting.cost(), cheapest->cost + 1e-9);
      if (kind != CaseKind::overlapping_tiers) ASSERT_NEAR(timetable.cost(), cheapest->cost, 1e-9);
      ASSERT_TRUE(simulate(trace, to_plan(problem, *nodes)).valid());
    }
  }
  EXPECT_GE(converted, tried * 9 / 10);
}

}  // namespace
}  // namespace reprise
