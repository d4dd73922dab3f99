// The passes that a session knows: which of them stay, and what is found among them.
#include "torch/plans/recorded_pass_cache.h"

#include <gtest/gtest.h>

#include "torch/plans/made_pass.h"

namespace reprise::internal {
namespace {

using testing::MadePass;

constexpr Bytes much = 1 << 30;

std::shared_ptr<RecordedPass> pass_of(Bytes bytes, int operators = 2) {
  MadePass made;
  Id value = made.outside(bytes);
  for (int i = 0; i < operators; ++i) value = made.run({value}, bytes);
  made.event("back", {value});
  return std::make_shared<RecordedPass>(made.pass());
}

TEST(RecordedPassCache, KeepsTheTwoNewestWhateverTheirBytes) {
  RecordedPassCache cache;
  for (Bytes bytes = 1; bytes <= 5; ++bytes) cache.add(pass_of(bytes), 0);
  ASSERT_EQ(cache.all().size(), 2u);
  EXPECT_EQ(cache.all()[0]->recipes->values[0].bytes, 4);
  EXPECT_EQ(cache.all()[1]->recipes->values[0].bytes, 5);
}

TEST(RecordedPassCache, DropsTheLeastUsedFirst) {
  RecordedPassCache cache;
  for (Bytes bytes = 1; bytes <= 4; ++bytes) cache.add(pass_of(bytes), much);
  const auto used = cache.all()[0];
  cache.met_again(*used);
  cache.keep_within(8 * (3 * used->bytes() + used->bytes() / 2));  // an eighth of that is room for three
  ASSERT_EQ(cache.all().size(), 3u);
  EXPECT_EQ(cache.all()[0], used);
}

TEST(RecordedPassCache, CountsNewPassesUntilOneIsMetAgain) {
  RecordedPassCache cache;
  for (Bytes bytes = 1; bytes <= 3; ++bytes) cache.add(pass_of(bytes), 0);
  EXPECT_EQ(cache.new_in_a_row(), 3);
  cache.add(pass_of(1), 0);
  EXPECT_EQ(cache.new_in_a_row(), 1) << "it was known, and had to go";
  cache.met_again(*cache.all().back());
  EXPECT_EQ(cache.new_in_a_row(), 0);
}

TEST(RecordedPassCache, KnowsHowManyOperatorsTwoPassesHaveInCommon) {
  RecordedPassCache cache;
  const auto one = pass_of(8, 2), other = pass_of(8, 5);
  cache.add(one, much);
  cache.add(other, much);
  ASSERT_EQ(one->common.size(), 1u);
  EXPECT_EQ(one->common[0].first.lock(), other);
  EXPECT_EQ(one->common[0].second, 2);
  EXPECT_EQ(other->common[0].second, 2);
}

TEST(RecordedPassCache, FindsAPassByItsRecipesAndAPlanForASimilarOne) {
  RecordedPassCache cache;
  const auto planned = pass_of(8), longer = pass_of(8, 3), similar = pass_of(16);
  for (const auto& pass : {planned, longer}) cache.add(pass, much);
  EXPECT_EQ(cache.of(*planned->recipes), planned);
  EXPECT_FALSE(cache.of(*similar->recipes));
  EXPECT_FALSE(cache.find_similar(*similar)) << "none has a plan";
  for (const auto& pass : {planned, longer}) pass->plan.emplace();
  EXPECT_EQ(cache.find_similar(*similar), planned);
  EXPECT_FALSE(cache.find_similar(*planned)) << "itself is none";
}

}  // namespace
}  // namespace reprise::internal
