// Recipes: what a step that diverges takes along, and which constants are the same.
#include "torch/recipes/recipes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "torch/plans/made_pass.h"

namespace reprise::internal {
namespace {

using testing::MadePass;

// x -> a -> b (in place on a) -> c
struct Three {
  MadePass made;
  Id x = made.outside(64), a = made.run({x}, 64), b = made.run_in_place(a), c = made.run({a, b}, 32);
  Recipes& recipes = made.recipes();
};

std::vector<Id> values_of(std::span<const Reference> references) {
  std::vector<Id> values;
  for (const Reference& reference : references) values.push_back(reference.value);
  return values;
}

TEST(Recipes, HaveTheirOwnPartsOfTheArenas) {
  const Three three;
  EXPECT_EQ(values_of(three.recipes.references_of(0)), (std::vector<Id>{three.x}));
  EXPECT_EQ(values_of(three.recipes.references_of(2)), (std::vector<Id>{three.a, three.b}));
  EXPECT_TRUE(three.recipes.writes_of(0).empty());
  ASSERT_EQ(three.recipes.writes_of(1).size(), 1u);
  EXPECT_EQ(three.recipes.writes_of(1)[0].before, three.a);
  EXPECT_EQ(three.recipes.outputs_of(2)[0].value, three.c);
}

TEST(Recipes, BeforeAnOperatorHaveOnlyTheValuesThatWereMetByThen) {
  const Three three;
  const Recipes head = three.recipes.before(1, std::nullopt);
  EXPECT_EQ(head.operators.size(), 1u);
  EXPECT_EQ(head.values.size(), 2u);
  EXPECT_EQ(head.values[three.a].maker, 0);
  EXPECT_TRUE(head.writes.empty());
  EXPECT_EQ(head.marks().references, 1u);
}

TEST(Recipes, BeforeTheFirstOperatorAreEmpty) {
  const Three three;
  const Recipes head = three.recipes.before(0, std::nullopt);
  EXPECT_TRUE(head.operators.empty());
  EXPECT_TRUE(head.values.empty());
}

TEST(Recipes, BeforeTheEndAreAllOfThem) {
  const Three three;
  EXPECT_EQ(three.recipes.before(3, std::nullopt).values.size(), three.recipes.values.size());
}

TEST(Recipes, WithAnOperatorButWithoutItsOutputsDoNotRecomputeWhatItWouldHaveMade) {
  const Three three;
  const Recipes head = three.recipes.before(1, 0);
  EXPECT_EQ(head.operators.size(), 2u);
  EXPECT_TRUE(head.outputs_of(1).empty());
  EXPECT_EQ(head.writes_of(1).size(), 1u);
  EXPECT_EQ(head.values.size(), 2u);
  const Recipes with_output = three.recipes.before(1, 1);
  EXPECT_EQ(with_output.values[three.b].maker, 1);
}

TEST(View, KnowsHowATensorLiesInItsStorage) {
  const at::Tensor whole = at::zeros({6, 4}), part = whole.t().slice(0, 1, 3);
  const View view(part);
  EXPECT_TRUE(view.matches(part));
  EXPECT_TRUE(view.matches(at::zeros({6, 4}).t().slice(0, 1, 3)));
  EXPECT_FALSE(view.matches(part.contiguous()));
  EXPECT_FALSE(view.matches(whole.t().slice(0, 0, 2)));
  EXPECT_FALSE(view.matches(part.to(at::kDouble)));
  EXPECT_TRUE(at::equal(view.of(whole.storage()), part));
}

TEST(SameConstant, ComparesBitsAndTypes) {
  EXPECT_TRUE(same_constant(std::nan(""), std::nan("")));
  EXPECT_FALSE(same_constant(0.0, -0.0));
  EXPECT_FALSE(same_constant(1, 1.0));
  EXPECT_FALSE(same_constant(1, true));
  EXPECT_TRUE(same_constant(c10::IValue(), c10::IValue()));
  EXPECT_FALSE(same_constant(c10::IValue(), 0));
  EXPECT_TRUE(same_constant("mean", "mean"));
  EXPECT_FALSE(same_constant("mean", "sum"));
}

TEST(SameConstant, ComparesListsElementByElement) {
  EXPECT_TRUE(same_constant(std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(same_constant(std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_TRUE(same_constant(std::vector<double>{}, std::vector<double>{}));
  EXPECT_FALSE(same_constant(std::vector<double>{1}, std::vector<double>{2}));
}

TEST(SameConstant, ComparesTensorsByTheirContents) {
  EXPECT_TRUE(same_constant(at::ones({3}), at::ones({3})));
  EXPECT_FALSE(same_constant(at::ones({3}), at::zeros({3})));
  EXPECT_FALSE(same_constant(at::ones({3}), at::ones({3, 1})));
  EXPECT_TRUE(same_constant(at::Tensor(), at::Tensor()));
  EXPECT_FALSE(same_constant(at::Tensor(), at::ones({3})));
}

}  // namespace
}  // namespace reprise::internal
