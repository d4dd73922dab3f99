// The course of a period: following recipes, leaving them, and what is its own meanwhile.
#include "torch/recipes/course.h"

#include <gtest/gtest.h>

#include "torch/plans/made_period.h"

namespace reprise::testing {
using namespace internal;
namespace {

// Two operators: b of a, which is from outside, and c of b.
struct TwoOperators {
  MadePeriod made;
  Id a = made.outside(64), b = made.run({a}, 128), c = made.run({b}, 256);
  std::shared_ptr<Recipes> recipes = std::make_shared<Recipes>(made.recipes());
};

TEST(Course, WritesItsOwnRecipesIfThereAreNoneToFollow) {
  Course course(nullptr);
  EXPECT_FALSE(course.following());
  EXPECT_TRUE(course.complete());
  EXPECT_EQ(course.add_value(64, no_operator), 0);
  EXPECT_TRUE(course.in_recipes(0));
  EXPECT_EQ(course.info(0).bytes, 64);
}

TEST(Course, KeepsValuesThatTheRecipesDoNotHaveToItself) {
  const TwoOperators two;
  Course course(two.recipes);
  const Id own = course.add_value(512, no_operator);
  EXPECT_EQ(own, 3);
  EXPECT_FALSE(course.in_recipes(own));
  EXPECT_EQ(course.info(own).bytes, 512);
  EXPECT_EQ(two.recipes->values.size(), 3u);
}

TEST(Course, TakesACopyOfWhatCameBeforeWhenItLeavesRecipes) {
  const TwoOperators two;
  Course course(two.recipes);
  const Id own = course.add_value(512, no_operator);
  course.advance();
  EXPECT_EQ(course.leave(std::nullopt), 2u);  // a and b; c was never made
  EXPECT_FALSE(course.following());
  EXPECT_EQ(course.recipes().operators.size(), 1u);
  EXPECT_EQ(course.values(), 3u);
  EXPECT_EQ(course.info(own - 1).bytes, 512);  // it moved to behind the values that are left
  EXPECT_EQ(two.recipes->operators.size(), 2u);
}

TEST(Course, HasNumbersOfItsOwnWhereTheyDifferFromTheRecipes) {
  const TwoOperators two;
  two.recipes->constants.emplace_back(0.5);
  Course course(two.recipes);
  EXPECT_EQ(course.constant(0).toDouble(), 0.5);
  course.change_constant(0, 0.25);
  EXPECT_EQ(course.constant(0).toDouble(), 0.25);
  EXPECT_EQ(two.recipes->constants[0].toDouble(), 0.5);
}

TEST(Course, TellsAllWhoFollowTheSameRecipesThatAnOperatorIsNotToBeReplayed) {
  const TwoOperators two;
  Course course(two.recipes);
  const Course other(two.recipes);
  course.obstruct(1, "no");
  EXPECT_STREQ(other.recipes().operators[1].obstacle, "no");
  EXPECT_EQ(other.info(two.c).maker, no_operator);
}

TEST(Course, AddsNoValuesToRecipesThatOthersMayFollow) {
  Course course(nullptr);
  course.seal();
  EXPECT_EQ(course.add_value(64, no_operator), 0);
  EXPECT_FALSE(course.in_recipes(0));
  EXPECT_TRUE(course.recipes().values.empty());
}

}  // namespace
}  // namespace reprise::testing
