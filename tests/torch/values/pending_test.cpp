// What autograd has saved and not released: by value, and from one backward to the next.
#include "torch/values/pending.h"

#include <gtest/gtest.h>

namespace reprise::internal {
namespace {

class PendingTest : public ::testing::Test {
 protected:
  PendingTest() { pending.resize(3); }

  Pending pending;
  SavedTensor first, second;
};

TEST_F(PendingTest, AreListedByValueUntilTheyAreRemoved) {
  pending.add(first, 1);
  pending.add(second, 1);
  EXPECT_EQ(first.value, 1);
  EXPECT_EQ(pending.of(1).size(), 2u);
  EXPECT_FALSE(pending.any_of(0));
  pending.remove(first);
  ASSERT_EQ(pending.of(1).size(), 1u);
  EXPECT_EQ(pending.of(1)[0], &second);
  EXPECT_EQ(pending.count(), 1);
}

TEST_F(PendingTest, AreOverOnlyWhenThereWereSome) {
  EXPECT_FALSE(pending.is_over());
  pending.add(first, 0);
  EXPECT_FALSE(pending.is_over());
  pending.remove(first);
  EXPECT_TRUE(pending.is_over());
}

TEST_F(PendingTest, LeaveAValueIfTheySawNoWrite) {
  pending.add(first, 2);  // no counter sees writes to it
  EXPECT_EQ(pending.take_unmoved(2), std::vector<SavedTensor*>{&first});
  EXPECT_EQ(pending.count(), 0);
  EXPECT_FALSE(pending.is_over()) << "it goes to another value";
}

TEST_F(PendingTest, OfTheNewestBackwardDifferFromOlderOnes) {
  pending.add(first, 0);
  EXPECT_FALSE(pending.end_backward()) << "it was saved since the one before";
  pending.add(second, 1);
  pending.remove(second);
  EXPECT_TRUE(pending.end_backward()) << "what is left is older";
  pending.remove(first);
  EXPECT_TRUE(pending.end_backward());
}

TEST_F(PendingTest, AreNumberedAnew) {
  pending.add(first, 2);
  pending.renumber(2, 1);
  EXPECT_EQ(first.value, 1);
  EXPECT_TRUE(pending.any_of(1));
  pending.remove(first);
  EXPECT_TRUE(pending.is_over());
}

}  // namespace
}  // namespace reprise::internal
