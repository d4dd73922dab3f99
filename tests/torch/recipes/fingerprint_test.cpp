// Fingerprints: the elements of a view count, each once, and nothing between them does.
#include "torch/recipes/fingerprint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

namespace reprise::internal {
namespace {

Fingerprint of(const at::Tensor& tensor) {
  return fingerprint(tensor.storage(), View(tensor));
}

at::Tensor numbers(at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::arange(count, at::kFloat).view(sizes);
}

TEST(Fingerprint, IsTheSameForTheSameElements) {
  const at::Tensor a = numbers({100, 300});
  EXPECT_EQ(of(a), of(a.clone()));
  EXPECT_TRUE(differences(of(a), of(a.clone())).empty());
}

TEST(Fingerprint, HasOneNumberForEachBlock) {
  const auto elements = static_cast<std::int64_t>(fingerprint_block / sizeof(float));
  EXPECT_EQ(of(numbers({elements})).size(), 1u);
  EXPECT_EQ(of(numbers({elements + 1})).size(), 2u);
  EXPECT_EQ(of(numbers({3 * elements})).size(), 3u);
}

TEST(Fingerprint, SaysWhichBlockDiffers) {
  const auto elements = static_cast<std::int64_t>(fingerprint_block / sizeof(float));
  const at::Tensor a = numbers({4 * elements});
  const Fingerprint before = of(a);
  for (const std::int64_t block : {0, 2, 3}) {
    const at::Tensor b = a.clone();
    b[block * elements + 17] += 1;
    EXPECT_EQ(differences(before, of(b)), (std::vector<std::size_t>{static_cast<std::size_t>(block)}));
  }
}

TEST(Fingerprint, SeesEveryBitOfEveryElement) {
  at::Tensor a = numbers({3, 5});
  const Fingerprint before = of(a);
  auto* const bytes = static_cast<unsigned char*>(a.data_ptr());
  for (std::size_t i = 0; i < a.nbytes(); ++i) {
    bytes[i] ^= 1;
    EXPECT_NE(of(a), before) << "byte " << i;
    bytes[i] ^= 1;
  }
  EXPECT_EQ(of(a), before);
}

TEST(Fingerprint, DistinguishesZeroFromNegativeZeroAndKnowsNotANumber) {
  const at::Tensor zero = at::zeros({8}), nothing = at::full({8}, std::nan(""));
  EXPECT_NE(of(zero), of(-zero));
  EXPECT_EQ(of(nothing), of(nothing.clone()));
}

TEST(Fingerprint, IgnoresWhatLiesBetweenTheElements) {
  at::Tensor whole = numbers({64, 64});
  for (const at::Tensor& view : {whole.slice(1, 3, 9), whole.slice(0, 1, 60, 7), whole.t().slice(0, 5, 6)}) {
    const at::Tensor mark = at::zeros({64, 64}, at::kBool);
    at::as_strided(mark, view.sizes(), view.strides(), view.storage_offset()).fill_(true);
    const Fingerprint before = of(view);
    const at::Tensor old = whole.clone();
    whole.masked_fill_(mark.logical_not(), -1);
    EXPECT_EQ(of(view), before);
    whole.copy_(old);
    view.add_(1);
    EXPECT_NE(of(view), before);
    whole.copy_(old);
  }
}

TEST(Fingerprint, CountsElementsThatAreReachedTwiceOnce) {
  const at::Tensor row = numbers({1, 32});
  EXPECT_EQ(of(row.expand({1000, 32})), of(row));
}

TEST(Fingerprint, OfNoElementsIsTheSameAlways) {
  EXPECT_EQ(of(at::empty({0, 3})), of(at::empty({0, 3})));
}

}  // namespace
}  // namespace reprise::internal
