// The online heuristics: whatever they return is a timetable that fits.
#include <gtest/gtest.h>

#include "plan/search/best.h"
#include "plan/search/online_scores.h"
#include "plan/search/timetable.h"
#include "reprise/plan/planner.h"
#include "support/cases.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::Random;
using testing::random_case;
using testing::read_aloud;
using testing::SmallTrace;

std::vector<OnlineScore> all_scores() {
  using Kind = OnlineScore::Kind;
  std::vector<OnlineScore> scores = oracle_scores();
  for (const Kind kind : {Kind::dtr, Kind::local, Kind::msps, Kind::lru, Kind::largest}) scores.push_back({kind});
  return scores;
}

TEST(OnlineHeuristics, GiveSchedulesThatLoadAndFit) {
  int found = 0, tried = 0;
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(80); ++seed) {
      Random random(seed);
      const Trace trace = random_case(kind, seed, random.between(3, 40));
      const Bytes low = floor_of(trace).bytes, high = keep_everything(trace).budget;
      const Timeline timeline(trace);
      const Problem problem(trace, timeline, low + (high - low) * random.between(0, 100) / 100);
      const auto uses = first_uses(problem);
      for (const OnlineScore& score : all_scores()) {
        SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed) + ", budget " +
                     std::to_string(problem.budget) + ", score " + std::to_string(static_cast<int>(score.kind)));
        ++tried;
        const auto nodes = simulate_online(problem, uses, score, {});
        if (!nodes) continue;
        ++found;
        Timetable timetable(problem);
        ASSERT_TRUE(timetable.load(*nodes));
        ASSERT_TRUE(timetable.fits()) << timetable.peak();
        ASSERT_LE(timetable.cost(), 3 * problem.plain_cost * (1 + 1e-9)) << "it stops before that";
        ASSERT_EQ(without_useless_repeats(problem, *nodes), *nodes);
        const Plan plan = to_plan(problem, *nodes);
        const Simulation simulation = simulate(trace, plan);
        ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence << "\n" << read_aloud(plan);
      }
    }
  }
  EXPECT_GT(found, tried / 4);
}

// Two values lie there unused, a large workspace needs one of them gone.
Trace two_candidates(Bytes first, Bytes second) {
  SmallTrace small;
  small.run({}, {first}, 5);
  small.run({}, {second}, 5);
  small.run({}, {}, 5, 10);
  small.event({0, 1});
  return small.trace;
}

std::vector<Id> timetable_of(const Trace& trace, Bytes budget, OnlineScore::Kind kind) {
  const Timeline timeline(trace);
  const Problem problem(trace, timeline, budget);
  const auto nodes = simulate_online(problem, first_uses(problem), {kind}, {});
  return nodes ? *nodes : std::vector<Id>{};
}

TEST(OnlineHeuristics, EvictWhatTheirScoreSays) {
  using Kind = OnlineScore::Kind;
  const Trace larger_last = two_candidates(3, 4), larger_first = two_candidates(4, 3);
  EXPECT_EQ(timetable_of(larger_last, 14, Kind::largest), (std::vector<Id>{0, 1, 2, 1, 3}));
  EXPECT_EQ(timetable_of(larger_first, 14, Kind::largest), (std::vector<Id>{0, 1, 2, 0, 3}));
  EXPECT_EQ(timetable_of(larger_first, 14, Kind::lru), (std::vector<Id>{0, 1, 2, 0, 3})) << "the older one";
  EXPECT_EQ(timetable_of(larger_last, 17, Kind::lru), (std::vector<Id>{0, 1, 2, 3})) << "nothing, if all fits";
  EXPECT_TRUE(timetable_of(larger_last, 9, Kind::lru).empty()) << "the workspace alone is larger";
}

TEST(OnlineHeuristics, StopWhenTheyAreAskedTo) {
  const Trace trace = testing::random_graph(3, 2000);
  const Timeline timeline(trace);
  const Problem problem(trace, timeline, (keep_everything(trace).budget + floor_of(trace).bytes) / 2);
  OnlineLimits limits;
  limits.stop = [] { return true; };
  EXPECT_FALSE(simulate_online(problem, first_uses(problem), {OnlineScore::Kind::lru}, limits));
}

// The program holds a value until its storage is taken over: then it is gone, and cannot be counted on.
TEST(OnlineHeuristics, DoNotCountOnAValueThatWasTakenOverWhenItsHoldEnded) {
  SmallTrace small;
  const Id input = small.outside(2, Stretch{0, 0});
  small.run({input}, {2});
  small.trace.values[1].takes_over = input;
  small.run({1}, {2});
  small.run({}, {4});
  small.run({2}, {});
  check(small.trace);
  const Timeline timeline(small.trace);
  for (Bytes budget = floor_of(small.trace).bytes; budget < 10; ++budget) {
    const Problem problem(small.trace, timeline, budget);
    for (const OnlineScore& score : all_scores()) {
      const auto nodes = simulate_online(problem, first_uses(problem), score, {});
      Timetable timetable(problem);
      if (nodes) EXPECT_TRUE(timetable.load(*nodes)) << "budget " << budget;
    }
  }
}

TEST(WithoutUselessRepeats, RemovesWhatNothingReads) {
  SmallTrace small;
  small.run({}, {1});
  small.run({0}, {1});
  small.run({1}, {1});
  small.event({0});
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 10);
  EXPECT_EQ(without_useless_repeats(problem, {0, 1, 0, 1, 2, 3}), (std::vector<Id>{0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(without_useless_repeats(problem, {0, 1, 2, 0, 1, 3}), (std::vector<Id>{0, 1, 2, 0, 3}));
  EXPECT_EQ(without_useless_repeats(problem, {0, 1, 2, 0, 0, 3}), (std::vector<Id>{0, 1, 2, 0, 3}));
  EXPECT_EQ(without_useless_repeats(problem, {0, 1, 2, 3, 0}), (std::vector<Id>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace reprise
