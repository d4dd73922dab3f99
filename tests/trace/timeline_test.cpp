#include "reprise/trace/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

std::vector<Id> list(std::span<const Id> ids) {
  return {ids.begin(), ids.end()};
}

TEST(Timeline, KnowsWhoMakesAndWhoNeedsAValue) {
  testing::SmallTrace small;
  const Id outside = small.outside(1);
  small.event({});
  small.run({outside}, {2, 3});
  small.event({outside, 1});
  small.run({1}, {2});
  small.trace.values[3].takes_over = 1;
  small.trace.values[2].held = Stretch{2, 3};
  small.trace.values[1].held = Stretch{2, 2};
  check(small.trace);
  const Timeline timeline(small.trace);
  EXPECT_EQ(timeline.moment_of(0), 1);
  EXPECT_EQ(timeline.moment_of(1), 3);
  EXPECT_EQ(timeline.made_at(outside), nowhere);
  EXPECT_EQ(timeline.made_at(2), 1);
  EXPECT_EQ(list(timeline.needed_at(outside)), (std::vector<Id>{1, 2}));
  EXPECT_EQ(list(timeline.needed_at(1)), (std::vector<Id>{2, 3}));  // at 2 twice over: needed and held from there
  EXPECT_EQ(list(timeline.needed_at(2)), (std::vector<Id>{2}));     // only by the program, from there on
  EXPECT_EQ(timeline.last_needed(1), 3);
  EXPECT_EQ(timeline.last_needed(3), 3);
  EXPECT_EQ(timeline.taken_at(1), 3);
  EXPECT_EQ(timeline.taken_at(2), nowhere);
  EXPECT_EQ(list(timeline.hold_starts(2)), (std::vector<Id>{1, 2}));
  EXPECT_EQ(list(timeline.hold_ends(3)), (std::vector<Id>{2}));
}

TEST(Timeline, AgreesWithTheTraceItself) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Trace trace = testing::random_trace(seed);
    const Timeline timeline(trace);
    for (Id v = 0; v < trace.value_count(); ++v) {
      std::vector<Id> needed;
      for (Id m = 0; m < trace.moment_count(); ++m) {
        const auto& inputs = trace.inputs(m);
        const auto& held = trace.values[v].held;
        const bool starts_later = held && held->first == m && trace.values[v].maker && timeline.made_at(v) < m;
        if (starts_later || std::count(inputs.begin(), inputs.end(), v) > 0) needed.push_back(m);
      }
      ASSERT_EQ(list(timeline.needed_at(v)), needed) << "seed " << seed << " value " << v;
    }
  }
}

}  // namespace
}  // namespace reprise
