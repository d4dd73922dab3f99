// The journal of a pass: moments, costs, releases, and what is taken over from a pass that is left.
#include "torch/values/journal.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "torch/memory/meter.h"

namespace reprise::testing {
using namespace internal;
namespace {

constexpr auto all_held = [](Id) { return true; };
constexpr auto none_held = [](Id) { return false; };

TEST(Journal, WritesNothingDownUnlessItIsAskedTo) {
  Journal journal;
  journal.begin_operator(0, 1, all_held);
  journal.end_moment();
  EXPECT_EQ(journal.moment(), 1);
  EXPECT_TRUE(journal.profile().moments.empty());
  EXPECT_TRUE(journal.other().empty());
}

TEST(Journal, KnowsTheMomentOfEachOperatorAndWhatEventsNeed) {
  Journal journal;
  journal.observe();
  journal.begin_operator(0, 1, all_held);
  journal.end_moment();
  journal.begin_event("MulBackward0", 7, 1, all_held);
  journal.needed(0);
  journal.end_event(3);
  const PassProfile seen = journal.take_profile();
  ASSERT_EQ(seen.moments.size(), 2u);
  EXPECT_EQ(seen.moment_of, std::vector<Id>{0});
  EXPECT_EQ(seen.moments[1].event_cost, 3);
  EXPECT_EQ(seen.moments[1].op, no_operator);
  EXPECT_EQ(seen.event_name(0), "");
  EXPECT_EQ(seen.event_name(1), "MulBackward0");
  ASSERT_EQ(seen.needs.size(), 1u);
  EXPECT_EQ(seen.needs[0].moment, 1);
  EXPECT_EQ(seen.needs[0].value, 0);
}

TEST(Journal, SeesWhenTheProgramReleasesAValue) {
  Journal journal;
  journal.observe();
  journal.begin_operator(0, 0, all_held);
  journal.end_moment();
  journal.made(0);
  journal.begin_operator(1, 1, all_held);
  journal.end_moment();
  EXPECT_EQ(journal.profile().released[0], -1);
  journal.begin_operator(2, 1, none_held);
  EXPECT_EQ(journal.profile().released[0], 1);  // it was held until the moment before
}

// What a node was given is freed when it has ended, and not there while values are recomputed for the next one.
TEST(Journal, CountsWhatGoesRightAfterANodeOfBackwardToThatNode) {
  Journal journal;
  journal.observe();
  at::Tensor given = at::empty({1000}, at::kFloat);
  journal.begin_event("MulBackward0", 7, 0, all_held);
  at::Tensor made = at::empty({500}, at::kFloat);
  journal.end_moment();
  { const at::Tensor sum = at::empty({2000}, at::kFloat); }
  given = at::Tensor();
  journal.begin_event("AddBackward0", 8, 0, all_held);
  journal.end_moment();
  const auto& other = journal.other();
  EXPECT_EQ(other[0].between - other[1].between, meter::counted(4000) - meter::counted(2000));
  EXPECT_EQ(other[0].within - other[0].between, meter::counted(2000) + meter::counted(8000));
}

TEST(Journal, ImprovesTheCostsOfThePassThatIsFollowed) {
  PassProfile known;
  known.costs = {4, 0};
  Journal journal;
  journal.follow(known);
  journal.measure(true, false);
  journal.set_cost(0, 9, true);
  journal.set_cost(1, 9, true);
  EXPECT_EQ(known.costs, (std::vector<float>{4, 9}));
  journal.set_cost(0, 3, true);
  EXPECT_EQ(journal.cost_of(0), 3);
  EXPECT_EQ(journal.cost_of(17), 0);
  journal.leave(1);
  EXPECT_EQ(journal.profile().costs, (std::vector<float>{3}));
  journal.set_cost(0, 2, true);
  EXPECT_EQ(known.costs[0], 3) << "it was left";
}

TEST(Journal, GoesOnWithWhatWasSeenInThePassThatIsLeft) {
  Journal before;
  before.observe();
  for (Id op = 0; op < 3; ++op) {
    before.begin_operator(op, static_cast<std::size_t>(op), all_held);
    before.end_moment();
    before.made(op);
  }
  PassProfile left = before.take_profile();
  left.costs = {1, 2, 3};

  Journal journal;
  journal.follow(left);
  journal.measure(false, false);
  journal.begin_operator(0, 3, all_held);
  journal.begin_operator(1, 3, all_held);
  journal.leave(2);
  journal.take_over(left, 2, 4, [](Id value) { return value == 1; });
  EXPECT_TRUE(journal.observing() && journal.measuring() && journal.measuring_other());
  EXPECT_EQ(journal.profile().moments.size(), 2u);
  EXPECT_EQ(journal.profile().costs, (std::vector<float>{1, 2}));
  EXPECT_EQ(journal.profile().released.size(), 4u);
  EXPECT_EQ(journal.other().size(), 2u);
  journal.begin_operator(2, 4, none_held);
  EXPECT_EQ(journal.profile().released, (std::vector<Id>{-1, 1, -1, -1})) << "only that one was watched";
}

TEST(Journal, IsNotPlannedOnceItIsMarked) {
  Journal journal;
  journal.observe();
  EXPECT_TRUE(journal.plannable());
  journal.mark_unplannable();
  EXPECT_FALSE(journal.plannable() || journal.observing());
}

}  // namespace
}  // namespace reprise::testing
