// What was seen of a pass, cut at the moment where a step left it.
#include "torch/recipes/observations.h"

#include <gtest/gtest.h>

namespace reprise::internal {
namespace {

// Operator 0, an event, operator 1, an event that needs value 1.
Observations four_moments() {
  Observations seen;
  seen.moments = {{.op = 0, .cost = 1}, {.name = 11, .cost = 2}, {.op = 1, .cost = 3}, {.name = 12, .cost = 4}};
  seen.needs = {{.moment = 1, .value = 0}, {.moment = 3, .value = 1}};
  seen.add_event("first", 11);
  seen.add_event("second", 12);
  seen.moment_of = {0, 2};
  seen.released = {0, 2, -1};
  seen.watched = {2};
  return seen;
}

TEST(Observations, HaveOnlyWhatWasSeenBeforeTheMoment) {
  const Observations cut = four_moments().before(2);
  ASSERT_EQ(cut.moments.size(), 2u);
  EXPECT_EQ(cut.moments[1].name, 11u);
  ASSERT_EQ(cut.needs.size(), 1u);
  EXPECT_EQ(cut.needs[0].moment, 1);
  EXPECT_EQ(cut.event_name(0), "");
  EXPECT_EQ(cut.event_name(1), "first");
  EXPECT_EQ(cut.event_name(3), "");
  EXPECT_EQ(cut.moment_of, (std::vector<Id>{0}));
}

TEST(Observations, TakeWhatWasReleasedSinceForHeld) {
  EXPECT_EQ(four_moments().before(2).released, (std::vector<Id>{0, -1, -1}));
  // Whoever was let go right before the cut may have been held by the program until the very operator that differs.
  EXPECT_EQ(four_moments().before(1).released, (std::vector<Id>{-1, -1, -1}));
  EXPECT_EQ(four_moments().before(4).released, (std::vector<Id>{0, 2, -1}));
}

TEST(Observations, HaveTheNameOfEachKindOfEventOnce) {
  Observations seen = four_moments();
  seen.moments.push_back({.name = 11, .cost = 2});
  seen.add_event("first", 11);
  EXPECT_EQ(seen.names.size(), 2u);
  EXPECT_EQ(seen.event_name(1), "first");
  EXPECT_EQ(seen.event_name(3), "second");
  EXPECT_EQ(seen.event_name(4), "first");
}

TEST(Observations, WatchNothingWhenTheyAreCut) {
  EXPECT_TRUE(four_moments().before(4).watched.empty());
}

}  // namespace
}  // namespace reprise::internal
