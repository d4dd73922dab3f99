// The codecs half and bfloat16: every result against a slow reference, and every error against the promised bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "store/rounding_cases.h"
#include "support/cases.h"

namespace reprise::rounding_test {
namespace {

using namespace reprise::testing;

// A format of 16 bits as a table: every finite number from zero up, in order, so that the index is its bits. Made with
// ldexp from the definition of the format, without anything from the library.
struct Table {
  const char* codec;
  int mantissa, bias;
  std::vector<double> numbers;
  double relative, below, absolute;  // |error| <= relative * |x|, and for |x| < below: <= absolute

  Table(const char* name, int mantissa_bits, int exponent_bias)
      : codec(name),
        mantissa(mantissa_bits),
        bias(exponent_bias),
        relative(std::ldexp(1, -mantissa_bits - 1)),
        below(std::ldexp(1, 1 - exponent_bias)),
        absolute(std::ldexp(1, -exponent_bias - mantissa_bits)) {
    for (int bits = 0; bits < infinity(); ++bits) {
      const int exponent = bits >> mantissa, front = bits & ((1 << mantissa) - 1);
      numbers.push_back(exponent == 0 ? std::ldexp(front, 1 - bias - mantissa)
                                      : std::ldexp((1 << mantissa) + front, exponent - bias - mantissa));
    }
  }
  [[nodiscard]] int infinity() const { return (2 * bias + 1) << mantissa; }
  // What would come after the largest number.
  [[nodiscard]] double after(int bits) const {
    return bits + 1 < infinity() ? numbers[static_cast<std::size_t>(bits) + 1] : std::ldexp(1, bias + 1);
  }
  // Exactly between a number and the next one.
  [[nodiscard]] double middle(int bits) const { return (numbers[static_cast<std::size_t>(bits)] + after(bits)) / 2; }
  // The bits of the nearest one, of two the even one. Not for NaN.
  [[nodiscard]] int nearest(double number) const {
    const int sign = std::signbit(number) ? 0x8000 : 0;
    const double magnitude = std::abs(number);
    if (std::isinf(magnitude)) return sign | infinity();
    const int low = static_cast<int>(std::ranges::upper_bound(numbers, magnitude) - numbers.begin()) - 1;
    const bool up = magnitude > middle(low) || (magnitude == middle(low) && low % 2 == 1);
    return sign | (low + up);
  }
};

const Table& table(int which) {
  static const Table tables[] = {{"half", 10, 15}, {"bfloat16", 7, 127}};
  return tables[which];
}

template <class T>
class SixteenBits : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SixteenBits, Reals);

// All that does not become infinite, against the reference and the bounds.
template <class T>
void expect_nearest(const Table& table, std::vector<T> numbers) {
  std::erase_if(numbers, [&](T number) {
    return std::isnan(number) ||
           (!std::isinf(number) && (table.nearest(number) & 0x7FFF) == static_cast<std::uint16_t>(table.infinity()));
  });
  const auto coded = encoded(table.codec, numbers);
  ASSERT_TRUE(coded) << table.codec;
  ASSERT_EQ(coded->size(), 2 * numbers.size());
  const std::vector<T> back = decoded<T>(table.codec, *coded, numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, coded->data() + 2 * i, 2);
    ASSERT_EQ(bits, table.nearest(numbers[i])) << table.codec << " of " << std::hexfloat << numbers[i];
    if (std::isinf(numbers[i])) {
      ASSERT_EQ(back[i], numbers[i]);
      continue;
    }
    const double error = std::abs(double{back[i]} - numbers[i]), magnitude = std::abs(numbers[i]);
    ASSERT_LE(error, magnitude < table.below ? table.absolute : table.relative * magnitude)
        << table.codec << " of " << std::hexfloat << numbers[i];
    ASSERT_EQ(std::signbit(back[i]), std::signbit(numbers[i]));
  }
}

TYPED_TEST(SixteenBits, RoundToTheNearestAroundEveryMiddle) {
  for (const int which : {0, 1}) {
    const Table& t = table(which);
    std::vector<TypeParam> numbers;
    for (int bits = 0; bits < t.infinity(); ++bits) {
      for (const double exact : {t.numbers[static_cast<std::size_t>(bits)], t.middle(bits)}) {
        const auto number = static_cast<TypeParam>(exact);
        ASSERT_EQ(number, exact);
        // For a double the neighbours are where rounding twice, first to float, goes wrong.
        for (const TypeParam near :
             {number, std::nextafter(number, TypeParam{0}), std::nextafter(number, Limits<TypeParam>::infinity())}) {
          numbers.push_back(near);
          numbers.push_back(-near);
        }
      }
    }
    expect_nearest(t, numbers);
  }
}

TYPED_TEST(SixteenBits, RoundToTheNearestForRandomNumbers) {
  Random random(1);
  for (const int which : {0, 1}) {
    std::vector<TypeParam> numbers{Limits<TypeParam>::denorm_min(),
                                   -Limits<TypeParam>::denorm_min(),
                                   Limits<TypeParam>::min(),
                                   Limits<TypeParam>::infinity(),
                                   -Limits<TypeParam>::infinity(),
                                   TypeParam{0},
                                   -TypeParam{0}};
    for (std::uint64_t i = 0; i < testing::cases(100'000); ++i) {
      numbers.push_back(from_bits<TypeParam>(random.next()));  // any pattern
      const double size = std::ldexp(1, static_cast<int>(random.below(320)) - 160);
      numbers.push_back(static_cast<TypeParam>(size * (static_cast<double>(random.next()) / 0x1p63 - 1)));
    }
    expect_nearest(table(which), numbers);
  }
}

TYPED_TEST(SixteenBits, GiveBackEveryNumberOfTheFormat) {
  for (const int which : {0, 1}) {
    std::vector<std::byte> coded(2 * 65536);
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto pattern = static_cast<std::uint16_t>(bits);
      std::memcpy(coded.data() + 2 * bits, &pattern, 2);
    }
    const Table& t = table(which);
    const auto numbers = decoded<TypeParam>(t.codec, coded, 65536);
    const auto again = encoded(t.codec, numbers);
    ASSERT_TRUE(again);
    const auto back = decoded<TypeParam>(t.codec, *again, 65536);
    EXPECT_EQ(std::memcmp(numbers.data(), back.data(), numbers.size() * sizeof(TypeParam)), 0);
    for (int bits = 0; bits < 65536; ++bits) {
      const auto i = static_cast<std::size_t>(bits);
      const int magnitude = bits & 0x7FFF;
      std::uint16_t pattern;
      std::memcpy(&pattern, again->data() + 2 * i, 2);
      if (magnitude > t.infinity()) {
        EXPECT_TRUE(std::isnan(numbers[i])) << bits;
        EXPECT_EQ(pattern, bits | 1 << (t.mantissa - 1)) << "a NaN is made quiet and otherwise stays as it is";
        continue;
      }
      EXPECT_EQ(pattern, bits);
      EXPECT_EQ(std::abs(numbers[i]), magnitude == t.infinity() ? Limits<double>::infinity()
                                                                : t.numbers[static_cast<std::size_t>(magnitude)]);
      EXPECT_EQ(std::signbit(numbers[i]), bits >= 0x8000);
    }
  }
}

TYPED_TEST(SixteenBits, RefuseAFiniteNumberThatWouldBecomeInfinite) {
  for (const int which : {0, 1}) {
    const Table& t = table(which);
    const auto first = static_cast<TypeParam>(t.middle(t.infinity() - 1));
    const TypeParam last = std::nextafter(first, TypeParam{0});
    for (const std::size_t n : {1, 15, 16, 17, 1024, 1500, 3000}) {
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        for (const TypeParam sign : {1, -1}) {
          std::vector<TypeParam> numbers(n, 1);
          for (const TypeParam refused : {first, Limits<TypeParam>::max()}) {
            numbers[at] = sign * refused;
            EXPECT_FALSE(encoded(t.codec, numbers)) << t.codec << ' ' << n << ' ' << at;
          }
          numbers[at] = sign * last;
          EXPECT_EQ(round_trip(t.codec, numbers)[at], sign * static_cast<TypeParam>(t.numbers.back()));
          numbers[at] = sign * Limits<TypeParam>::infinity();
          EXPECT_EQ(round_trip(t.codec, numbers), numbers);
        }
      }
    }
  }
}

TYPED_TEST(SixteenBits, KeepNaNs) {
  Random random(2);
  const std::uint64_t exponent = std::bit_cast<Bits<TypeParam>>(Limits<TypeParam>::infinity());
  for (const int which : {0, 1}) {
    std::vector<TypeParam> numbers{Limits<TypeParam>::quiet_NaN(), Limits<TypeParam>::signaling_NaN(),
                                   from_bits<TypeParam>(exponent + 1)};  // its payload is beyond what is kept
    while (numbers.size() < 1000) {
      const auto number = from_bits<TypeParam>(random.next() | exponent);
      if (std::isnan(number)) numbers.push_back(number);
    }
    const auto back = round_trip(table(which).codec, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_TRUE(std::isnan(back[i]));
      EXPECT_EQ(std::signbit(back[i]), std::signbit(numbers[i]));
    }
  }
}

}  // namespace
}  // namespace reprise::rounding_test
