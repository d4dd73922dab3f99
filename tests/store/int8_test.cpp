// The codec int8: every error against the promised bound, from the smallest numbers to the largest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "store/rounding_cases.h"
#include "support/cases.h"

namespace reprise::int8_test {
namespace {

using namespace reprise::testing;

template <class T>
class Int8 : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Int8, Reals);

// Blocks as int8 has them, and whether the promise holds in each.
template <class T>
void expect_int8_bound(const std::vector<T>& numbers) {
  using Wide = long double;  // everything below is exact in it, or nearly, and in its range
  const auto back = round_trip("int8", numbers);
  for (std::size_t first = 0; first < numbers.size(); first += 64) {
    const std::size_t end = std::min(numbers.size(), first + 64);
    T largest = 0;
    for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(numbers[i]));
    const Wide bound = Wide{largest} / 253 + Wide{Limits<T>::denorm_min()} / 2;
    for (std::size_t i = first; i < end; ++i) {
      ASSERT_LE(std::abs(Wide{numbers[i]} - Wide{back[i]}), bound)
          << std::hexfloat << numbers[i] << " became " << back[i] << " beside " << largest;
      if (numbers[i] == 0 || std::abs(numbers[i]) == largest) ASSERT_EQ(back[i], numbers[i]);
    }
  }
}

TYPED_TEST(Int8, StaysWithinItsBoundFromTheSmallestToTheLargestNumbers) {
  Random random(3);
  constexpr int lowest = Limits<TypeParam>::min_exponent - Limits<TypeParam>::digits;
  for (int exponent = lowest; exponent < Limits<TypeParam>::max_exponent; ++exponent) {
    const std::size_t n = 64 * (exponent < lowest + 70 ? testing::cases(8) : 2) + random.below(64);
    TypeParam largest = std::ldexp(TypeParam(1), exponent);
    largest += largest * static_cast<TypeParam>(static_cast<double>(random.next() >> 11) / 0x1p53);
    if (std::isinf(largest)) largest = Limits<TypeParam>::max();
    if (largest == 0) continue;
    expect_int8_bound(random_numbers(random, n, largest));
  }
  expect_int8_bound(random_numbers(random, 1000, Limits<TypeParam>::max()));
}

TYPED_TEST(Int8, StaysWithinItsBoundForEverySubnormalBlock) {
  // All numbers of a block are small multiples of the smallest: every one of them beside every largest.
  for (int largest = 1; largest <= 600; ++largest) {
    std::vector<TypeParam> numbers;
    for (int k = 0; k <= largest; ++k) {
      if (numbers.size() % 64 == 0)
        numbers.push_back(static_cast<TypeParam>(largest) * Limits<TypeParam>::denorm_min());
      numbers.push_back(static_cast<TypeParam>(k % 2 ? k : -k) * Limits<TypeParam>::denorm_min());
    }
    expect_int8_bound(numbers);
    if (largest <= 126) {
      EXPECT_EQ(round_trip("int8", numbers), numbers) << "fewer than 127 steps: exact";
    }
  }
}

TYPED_TEST(Int8, StaysWithinItsBoundAroundEveryMiddle) {
  Random random(4);
  for (std::uint64_t round = 0; round < testing::cases(200); ++round) {
    auto largest = std::abs(from_bits<TypeParam>(random.next()));
    if (!std::isfinite(largest)) largest = 1;
    std::vector<TypeParam> numbers;
    for (int q = -127; q < 127; ++q) {
      if (numbers.size() % 64 == 0) numbers.push_back(largest);
      const auto middle = static_cast<TypeParam>((q + 0.5L) / 127 * largest);
      for (const TypeParam near : {middle, std::nextafter(middle, -largest), std::nextafter(middle, largest)}) {
        if (std::abs(near) <= largest) numbers.push_back(near);
      }
    }
    expect_int8_bound(numbers);
  }
}

TYPED_TEST(Int8, KeepsOneLargestForEachBlock) {
  for (const std::size_t n : {2, 63, 64, 65, 128, 1000}) {
    std::vector<TypeParam> numbers(n, TypeParam(0.25));
    EXPECT_EQ(encoded("int8", numbers)->size(), n + (n + 63) / 64 * sizeof(TypeParam));
    numbers[0] = TypeParam(1e30);
    const auto back = round_trip("int8", numbers);
    for (std::size_t i = 1; i < n; ++i) EXPECT_EQ(back[i], i < 64 ? 0 : TypeParam(0.25));
  }
  EXPECT_FALSE(codec("int8").room(std::vector<TypeParam>(1))) << "larger than it was";
  EXPECT_EQ(round_trip("int8", std::vector<TypeParam>(200)), std::vector<TypeParam>(200)) << "blocks of zeros";
}

TYPED_TEST(Int8, RefusesWhatIsNotFinite) {
  for (const std::size_t n : {2, 64, 200}) {
    for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      for (const TypeParam number : {Limits<TypeParam>::infinity(), -Limits<TypeParam>::infinity(),
                                     Limits<TypeParam>::quiet_NaN(), Limits<TypeParam>::signaling_NaN()}) {
        std::vector<TypeParam> numbers(n, 1);
        numbers[at] = number;
        EXPECT_FALSE(encoded("int8", numbers)) << n << ' ' << at;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::int8_test
