// What was seen of a period, cut at the moment where a step left it.
#include "torch/observations.h"

#include <gtest/gtest.h>

namespace reprise::internal {
namespace {

// Operator 0, an event, operator 1, an event that needs value 1.
Observations four_moments() {
  Observations seen;
  seen.moments = {{.op = 0, .cost = 1}, {.name = 11, .cost = 2}, {.op = 1, .cost = 3}, {.name = 12, .cost = 4}};
  seen.needs = {{}, {0}, {}, {1}};
  seen.event_names = {"", "first", "", "second"};
  seen.moment_of = {0, 2};
  seen.released = {0, 2, -1};
  seen.watched = {2};
  return seen;
}

TEST(Observations, HaveOnlyWhatWasSeenBeforeTheMoment) {
  const Observations cut = four_moments().before(2);
  ASSERT_EQ(cut.moments.size(), 2u);
  EXPECT_EQ(cut.moments[1].name, 11u);
  EXPECT_EQ(cut.needs, (std::vector<std::vector<Id>>{{}, {0}}));
  EXPECT_EQ(cut.event_names, (std::vector<std::string>{"", "first"}));
  EXPECT_EQ(cut.moment_of, (std::vector<Id>{0}));
}

TEST(Observations, TakeWhatWasReleasedSinceForHeld) {
  EXPECT_EQ(four_moments().before(2).released, (std::vector<Id>{0, -1, -1}));
  // Whoever was let go right before the cut may have been held by the program until the very operator that differs.
  EXPECT_EQ(four_moments().before(1).released, (std::vector<Id>{-1, -1, -1}));
  EXPECT_EQ(four_moments().before(4).released, (std::vector<Id>{0, 2, -1}));
}

TEST(Observations, MayHaveFewerNeedsThanMoments) {
  Observations seen = four_moments();
  seen.needs.resize(1);
  seen.event_names.resize(1);
  const Observations cut = seen.before(3);
  EXPECT_EQ(cut.moments.size(), 3u);
  EXPECT_EQ(cut.needs.size(), 1u);
  EXPECT_EQ(cut.event_names.size(), 1u);
}

TEST(Observations, WatchNothingWhenTheyAreCut) {
  EXPECT_TRUE(four_moments().before(4).watched.empty());
}

}  // namespace
}  // namespace reprise::internal
