// Trust: values of a kind that was compared often are compared now and then.
#include "torch/trust.h"

#include <gtest/gtest.h>

#include "torch/made_period.h"

namespace reprise::internal {
namespace {

using testing::MadePeriod;

// One operator that reads a tensor of this shape, contiguous, of 32-bit numbers.
MadePeriod reading(std::initializer_list<std::int64_t> sizes_and_strides) {
  MadePeriod made;
  (void)made.run({made.outside(8)}, 8);
  made.recipes().references.back().view.dims = sizes_and_strides;
  return made;
}

void compare(Trust& trust, const Recipes& recipes, int recordings, int each) {
  for (int i = 1; i <= recordings; ++i) {
    for (int k = 0; k < each; ++k) trust.grow(recipes, 0, static_cast<std::uint32_t>(i));
  }
}

TEST(Trust, NeedsManyComparisonsInSeveralRecordings) {
  MadePeriod made = reading({4, 1});
  const Recipes& recipes = made.recipes();
  Trust trust;
  EXPECT_FALSE(trust.suffices(recipes, 0));
  compare(trust, recipes, 3, 100);
  EXPECT_FALSE(trust.suffices(recipes, 0)) << "too few recordings";
  compare(trust, recipes, 4, 1);
  EXPECT_TRUE(trust.suffices(recipes, 0));

  Trust other;
  compare(other, recipes, 15, 1);
  EXPECT_FALSE(other.suffices(recipes, 0)) << "too few comparisons";
  compare(other, recipes, 1, 1);
  EXPECT_TRUE(other.suffices(recipes, 0));
}

TEST(Trust, StillHasOneOfSixteenCompared) {
  MadePeriod made = reading({4, 1});
  Trust trust;
  compare(trust, made.recipes(), 4, 4);
  int compared = 0;
  for (int i = 0; i < 160; ++i) compared += trust.suffices(made.recipes(), 0) ? 0 : 1;
  EXPECT_EQ(compared, 10);
}

TEST(Trust, IsInOneKindOfValues) {
  MadePeriod made = reading({4, 1}), longer = reading({8, 1}), strided = reading({4, 2}), alike = reading({4, 1});
  MadePeriod after_another = reading({4, 1});
  after_another.recipes().operators[0].likeness.back() = 1;
  Trust trust;
  compare(trust, made.recipes(), 4, 4);
  EXPECT_TRUE(trust.suffices(alike.recipes(), 0));
  for (MadePeriod* const other : {&longer, &strided, &after_another}) {
    EXPECT_FALSE(trust.suffices(other->recipes(), 0));
  }
}

TEST(Trust, IsNeverInOperatorsThatAreNotLibTorchsOwn) {
  MadePeriod made = reading({4, 1});
  OperatorInfo info(c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor"));
  info.name = "mine::mul";
  made.recipes().operators[0].info = &info;
  Trust trust;
  compare(trust, made.recipes(), 100, 100);
  EXPECT_FALSE(trust.suffices(made.recipes(), 0));
}

}  // namespace
}  // namespace reprise::internal
