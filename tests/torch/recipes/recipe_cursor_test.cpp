// The cursor of a pass: following recipes, leaving them, and what is its own meanwhile.
#include "torch/recipes/recipe_cursor.h"

#include <gtest/gtest.h>

#include "torch/plans/made_pass.h"

namespace reprise::testing {
using namespace internal;
namespace {

// Two operators: b of a, which is from outside, and c of b.
struct TwoOperators {
  MadePass made;
  Id a = made.outside(64), b = made.run({a}, 128), c = made.run({b}, 256);
  std::shared_ptr<Recipes> recipes = std::make_shared<Recipes>(made.recipes());
};

TEST(RecipeCursor, WritesItsOwnRecipesIfThereAreNoneToFollow) {
  RecipeCursor cursor(nullptr);
  EXPECT_FALSE(cursor.following());
  EXPECT_TRUE(cursor.complete());
  EXPECT_EQ(cursor.add_value(64, no_operator), 0);
  EXPECT_TRUE(cursor.in_recipes(0));
  EXPECT_EQ(cursor.info(0).bytes, 64);
}

TEST(RecipeCursor, KeepsValuesThatTheRecipesDoNotHaveToItself) {
  const TwoOperators two;
  RecipeCursor cursor(two.recipes);
  const Id own = cursor.add_value(512, no_operator);
  EXPECT_EQ(own, 3);
  EXPECT_FALSE(cursor.in_recipes(own));
  EXPECT_EQ(cursor.info(own).bytes, 512);
  EXPECT_EQ(two.recipes->values.size(), 3u);
}

TEST(RecipeCursor, TakesACopyOfWhatCameBeforeWhenItLeavesRecipes) {
  const TwoOperators two;
  RecipeCursor cursor(two.recipes);
  const Id own = cursor.add_value(512, no_operator);
  cursor.advance();
  EXPECT_EQ(cursor.leave(std::nullopt), 2u);  // a and b; c was never made
  EXPECT_FALSE(cursor.following());
  EXPECT_EQ(cursor.recipes().operators.size(), 1u);
  EXPECT_EQ(cursor.values(), 3u);
  EXPECT_EQ(cursor.info(own - 1).bytes, 512);  // it moved to behind the values that are left
  EXPECT_EQ(two.recipes->operators.size(), 2u);
}

TEST(RecipeCursor, HasNumbersOfItsOwnWhereTheyDifferFromTheRecipes) {
  const TwoOperators two;
  two.recipes->constants.emplace_back(0.5);
  RecipeCursor cursor(two.recipes);
  EXPECT_EQ(cursor.constant(0).toDouble(), 0.5);
  cursor.change_constant(0, 0.25);
  EXPECT_EQ(cursor.constant(0).toDouble(), 0.25);
  EXPECT_EQ(two.recipes->constants[0].toDouble(), 0.5);
}

TEST(RecipeCursor, MarksAnOperatorAsNotReplayableForAllWhoFollowTheSameRecipes) {
  const TwoOperators two;
  RecipeCursor cursor(two.recipes);
  const RecipeCursor other(two.recipes);
  cursor.mark_not_replayable(1, "no");
  EXPECT_STREQ(other.recipes().operators[1].why_not_replayable, "no");
  EXPECT_EQ(other.info(two.c).maker, no_operator);
}

TEST(RecipeCursor, AddsNoValuesToRecipesThatOthersMayFollow) {
  RecipeCursor cursor(nullptr);
  cursor.seal();
  EXPECT_EQ(cursor.add_value(64, no_operator), 0);
  EXPECT_FALSE(cursor.in_recipes(0));
  EXPECT_TRUE(cursor.recipes().values.empty());
}

}  // namespace
}  // namespace reprise::testing
