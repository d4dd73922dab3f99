// Operators that write in place and are replayed together.
#include "torch/plans/in_place_chains.h"

#include <gtest/gtest.h>

#include "torch/plans/made_pass.h"

namespace reprise::internal {
namespace {

using testing::MadePass;

TEST(InPlaceChains, JoinOperatorsWhoseValueOnlyTheNextOneNeeds) {
  MadePass made;
  const Id a = made.run({}, 8), b = made.run_in_place(a);
  (void)made.run_in_place(b);
  const InPlaceChains chains(made.pass());
  EXPECT_EQ(chains.last(0), 2);
  EXPECT_EQ(chains.next(0), 1);
  EXPECT_EQ(chains.last(1), 2);
  EXPECT_TRUE(chains.goes_on(1));
  EXPECT_EQ(chains.last(2), 2);
  EXPECT_FALSE(chains.goes_on(2));
}

TEST(InPlaceChains, EndWhereAnotherOperatorReadsTheValue) {
  MadePass made;
  const Id a = made.run({}, 8);
  (void)made.run({a}, 8);
  (void)made.run_in_place(a);
  EXPECT_FALSE(InPlaceChains(made.pass()).goes_on(0));
}

TEST(InPlaceChains, EndWhereBackwardNeedsTheValue) {
  MadePass made;
  const Id a = made.run({}, 8);
  (void)made.run_in_place(a);
  made.event("back", {a});
  EXPECT_FALSE(InPlaceChains(made.pass()).goes_on(0));
}

TEST(InPlaceChains, EndWhereOneOfTheTwoCannotBeReplayed) {
  for (const bool first : {true, false}) {
    MadePass made;
    const Id a = made.run({}, 8);
    if (first) made.why_not_replayable("it draws in its own way");
    (void)made.run_in_place(a);
    if (!first) made.why_not_replayable("it draws in its own way");
    EXPECT_FALSE(InPlaceChains(made.pass()).goes_on(0));
  }
}

}  // namespace
}  // namespace reprise::internal
