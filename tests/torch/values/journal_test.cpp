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
  journal.end_moment(5);
  EXPECT_EQ(journal.moment(), 1);
  EXPECT_TRUE(journal.seen().moments.empty());
  EXPECT_TRUE(journal.other().empty());
}

TEST(Journal, KnowsTheMomentOfEachOperatorAndWhatEventsNeed) {
  Journal journal;
  journal.observe();
  journal.begin_operator(0, 1, all_held);
  journal.end_moment(5);
  journal.begin_event("MulBackward0", 7, 1, all_held);
  journal.needed(0);
  journal.end_moment(3);
  const Observations seen = journal.take_observations();
  ASSERT_EQ(seen.moments.size(), 2u);
  EXPECT_EQ(seen.moment_of, std::vector<Id>{0});
  EXPECT_EQ(seen.moments[0].cost, 5);
  EXPECT_EQ(seen.moments[1].op, no_operator);
  EXPECT_EQ(seen.event_name(0), "");
  EXPECT_EQ(seen.event_name(1), "MulBackward0");
  ASSERT_EQ(seen.needs.size(), 1u);
  EXPECT_EQ(seen.needs[0].moment, 1);
  EXPECT_EQ(seen.needs[0].value, 0);
}

TEST(Journal, SeesWhenTheProgramLetsGoOfAValue) {
  Journal journal;
  journal.observe();
  journal.begin_operator(0, 0, all_held);
  journal.end_moment(1);
  journal.made(0);
  journal.begin_operator(1, 1, all_held);
  journal.end_moment(1);
  EXPECT_EQ(journal.seen().released[0], -1);
  journal.begin_operator(2, 1, none_held);
  EXPECT_EQ(journal.seen().released[0], 1);  // it was held until the moment before
}

// What a node was given is freed when it has ended, and not there while values are recomputed for the next one.
TEST(Journal, CountsWhatGoesRightAfterANodeOfBackwardToThatNode) {
  Journal journal;
  journal.observe();
  at::Tensor given = at::empty({1000}, at::kFloat);
  journal.begin_event("MulBackward0", 7, 0, all_held);
  at::Tensor made = at::empty({500}, at::kFloat);
  journal.end_moment(1);
  { const at::Tensor sum = at::empty({2000}, at::kFloat); }
  given = at::Tensor();
  journal.begin_event("AddBackward0", 8, 0, all_held);
  journal.end_moment(1);
  const auto& other = journal.other();
  EXPECT_EQ(other[0].between - other[1].between, meter::counted(4000) - meter::counted(2000));
  EXPECT_EQ(other[0].within - other[0].between, meter::counted(2000) + meter::counted(8000));
}

TEST(Journal, TakesTheLeastOfTheCostsThatWereMeasured) {
  Journal journal;
  journal.measure({4, 0}, true, false);
  journal.cost(0, 9, true);
  journal.cost(1, 9, true);
  EXPECT_EQ(journal.costs(), (std::vector<float>{4, 9}));
  journal.cost(0, 3, true);
  EXPECT_EQ(journal.cost_of(0), 3);
  EXPECT_EQ(journal.cost_of(17), 0);
}

TEST(Journal, GoesOnWithWhatWasSeenInThePassThatIsLeft) {
  Journal before;
  before.observe();
  for (Id op = 0; op < 3; ++op) {
    before.begin_operator(op, static_cast<std::size_t>(op), all_held);
    before.end_moment(2);
    before.made(op);
  }
  RecordedPass left;
  left.recipes = std::make_shared<Recipes>();
  left.other = before.other();
  left.seen = before.take_observations();

  Journal journal;
  journal.measure({}, false, false);
  journal.begin_operator(0, 3, all_held);
  journal.begin_operator(1, 3, all_held);
  journal.take_over(left, 2, 4, [](Id value) { return value == 1; });
  EXPECT_TRUE(journal.observing() && journal.measuring() && journal.measuring_other());
  EXPECT_EQ(journal.seen().moments.size(), 2u);
  EXPECT_EQ(journal.seen().released.size(), 4u);
  EXPECT_EQ(journal.seen().watched, std::vector<Id>{1});
  EXPECT_EQ(journal.other().size(), 2u);
}

TEST(Journal, IsNotPlannedOnceItIsGivenUp) {
  Journal journal;
  journal.observe();
  EXPECT_TRUE(journal.plannable());
  journal.give_up("backward was recorded");
  EXPECT_FALSE(journal.plannable() || journal.observing());
}

}  // namespace
}  // namespace reprise::testing
