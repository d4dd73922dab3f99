// What the benchmarks of training compute from their measurements.
#include <gtest/gtest.h>

#include "training_figures.h"

namespace reprise::benchmarks {
namespace {

TEST(BenchmarkSpread, HasTheMedianAndTheQuartilesOfWhatIsGiven) {
  const Spread spread = spread_of({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(spread.low, 2);
  EXPECT_DOUBLE_EQ(spread.median, 3);
  EXPECT_DOUBLE_EQ(spread.high, 4);
  EXPECT_DOUBLE_EQ(spread_of({1, 2}).median, 1.5);
  EXPECT_DOUBLE_EQ(spread_of({7}).high, 7);
  EXPECT_THROW(static_cast<void>(spread_of({})), std::invalid_argument);
}

TEST(BenchmarkSample, OfSeveralStepsHasTheLargestPeakAndTheWorstOfTheirBits) {
  Sample all{1.0, 500, std::nullopt, true};
  EXPECT_TRUE(all.bit_equal());
  all.add({2.0, 700, 0.25, true});
  all.add({3.0, 600, 0.125, false});
  EXPECT_DOUBLE_EQ(all.seconds, 6);
  EXPECT_EQ(all.peak, 700);
  EXPECT_EQ(all.gradient_error, 0.25);
  EXPECT_FALSE(all.buffers_equal);
  EXPECT_FALSE(all.bit_equal());
}

TEST(BenchmarkShares, OneBudgetServesRivalsThatAreClose) {
  const std::vector<double> shares = shares_to_measure({0.505, 0.5, 0.3}, /*quick=*/true);
  EXPECT_EQ(shares, (std::vector<double>{0.5, 0.3, 0.3 * 0.8}));
}

TEST(BenchmarkShares, AreNeverFarApart) {
  const std::vector<double> shares = shares_to_measure({0.8, 0.2}, /*quick=*/false);
  for (std::size_t i = 1; i < shares.size(); ++i) {
    EXPECT_LT(shares[i], shares[i - 1]);
    EXPECT_LE(shares[i - 1] - shares[i], 0.2 + 1e-9);
  }
}

}  // namespace
}  // namespace reprise::benchmarks
