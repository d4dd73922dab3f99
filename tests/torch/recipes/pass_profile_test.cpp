// The profile of a pass, and what of it is left at the moment where a step left the pass.
#include "torch/recipes/pass_profile.h"

#include <gtest/gtest.h>

namespace reprise::internal {
namespace {

// Operator 0, an event, operator 1, an event that needs value 1.
PassProfile four_moments() {
  PassProfile profile;
  profile.moments = {{.op = 0}, {.name = 11, .event_cost = 2}, {.op = 1}, {.name = 12, .event_cost = 4}};
  profile.needs = {{.moment = 1, .value = 0}, {.moment = 3, .value = 1}};
  profile.add_event("first", 11);
  profile.add_event("second", 12);
  profile.moment_of = {0, 2};
  profile.released = {0, 2, -1};
  profile.costs = {1, 3};
  profile.other = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  return profile;
}

TEST(PassProfile, HasOnlyWhatWasSeenBeforeTheMomentWhereItIsCut) {
  const PassProfile cut = four_moments().before(2);
  ASSERT_EQ(cut.moments.size(), 2u);
  EXPECT_EQ(cut.moments[1].name, 11u);
  ASSERT_EQ(cut.needs.size(), 1u);
  EXPECT_EQ(cut.needs[0].moment, 1);
  EXPECT_EQ(cut.event_name(0), "");
  EXPECT_EQ(cut.event_name(1), "first");
  EXPECT_EQ(cut.event_name(3), "");
  EXPECT_EQ(cut.moment_of, (std::vector<Id>{0}));
  EXPECT_EQ(cut.costs, (std::vector<float>{1}));
  EXPECT_EQ(cut.other, (std::vector<OtherBytes>{{1, 2}, {3, 4}}));
}

TEST(PassProfile, TakesWhatWasReleasedSinceForHeld) {
  EXPECT_EQ(four_moments().before(2).released, (std::vector<Id>{0, -1, -1}));
  // Whoever was let go right before the cut may have been held by the program until the very operator that differs.
  EXPECT_EQ(four_moments().before(1).released, (std::vector<Id>{-1, -1, -1}));
  EXPECT_EQ(four_moments().before(4).released, (std::vector<Id>{0, 2, -1}));
}

TEST(PassProfile, HasTheNameOfEachKindOfEventOnce) {
  PassProfile profile = four_moments();
  profile.moments.push_back({.name = 11, .event_cost = 2});
  profile.add_event("first", 11);
  EXPECT_EQ(profile.names.size(), 2u);
  EXPECT_EQ(profile.event_name(1), "first");
  EXPECT_EQ(profile.event_name(3), "second");
  EXPECT_EQ(profile.event_name(4), "first");
}

TEST(PassProfile, HasOneCostForEachMoment) {
  PassProfile profile = four_moments();
  EXPECT_DOUBLE_EQ(profile.seconds(), 1e-6 * (1 + 2 + 3 + 4));
  profile.cost_at(1) = 5;
  profile.cost_at(2) = 7;
  EXPECT_EQ(profile.moments[1].event_cost, 5);
  EXPECT_EQ(profile.cost_of(1), 7);
  EXPECT_EQ(profile.cost_of(2), 0) << "there is no such operator";
}

TEST(PassProfile, ListsWhatAnEventNeedsAndHowAValuePacks) {
  PassProfile profile = four_moments();
  ASSERT_EQ(profile.needs_of(3).size(), 1u);
  EXPECT_EQ(profile.needs_of(3)[0].value, 1);
  EXPECT_TRUE(profile.needs_of(2).empty());
  EXPECT_FALSE(profile.form_of(0));
  profile.forms = {std::nullopt, PackedForm()};
  EXPECT_FALSE(profile.form_of(0));
  EXPECT_TRUE(profile.form_of(1));
}

}  // namespace
}  // namespace reprise::internal
