// What happens to a value when autograd saves it: each rule, and which one comes first.
#include "torch/evict/save_decision.h"

#include <gtest/gtest.h>

namespace reprise::internal {
namespace {

TEST(SaveDecision, KeepsByDefault) {
  EXPECT_EQ(decide({}), OnSave::keep);
  EXPECT_EQ(decide({.may_evict = false}), OnSave::keep);
  EXPECT_EQ(decide({.choice = Choice::keep}), OnSave::keep);
}

TEST(SaveDecision, HoldsWhatNothingBringsBackWhateverElseIsAskedFor) {
  EXPECT_EQ(decide({.recomputable = false, .evicts_everything = true, .in_region = true, .dropped_by_plan = true}),
            OnSave::hold);
  EXPECT_EQ(decide({.recomputable = false, .choice = Choice::evict}), OnSave::hold);
}

TEST(SaveDecision, EvictsAtOnceWhereTheSessionOrARegionDoes) {
  EXPECT_EQ(decide({.evicts_everything = true, .choice = Choice::keep}), OnSave::evict);
  EXPECT_EQ(decide({.in_region = true}), OnSave::evict);
  EXPECT_EQ(decide({.in_region = true, .choice = Choice::pack}), OnSave::evict);
  EXPECT_EQ(decide({.in_region = true, .choice = Choice::keep}), OnSave::keep);
}

TEST(SaveDecision, FollowsThePolicyBeforeThePlan) {
  EXPECT_EQ(decide({.dropped_by_plan = true, .choice = Choice::evict}), OnSave::evict);
  EXPECT_EQ(decide({.may_evict = false, .choice = Choice::evict}), OnSave::keep) << "without a budget nothing goes";
  EXPECT_EQ(decide({.choice = Choice::pack}), OnSave::pack);
}

TEST(SaveDecision, LeavesToThePlanWhatThePlanHasDropped) {
  EXPECT_EQ(decide({.dropped_by_plan = true}), OnSave::leave);
  EXPECT_EQ(decide({.dropped_by_plan = true, .choice = Choice::pack}), OnSave::leave);
}

}  // namespace
}  // namespace reprise::internal
