// The two kinds of loops behind the codecs that round make the same bytes, whatever they are given.
#include "store/rounding_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "store/rounding_cases.h"
#include "support/cases.h"

namespace reprise::rounding_kernels_test {
using namespace internal;
namespace {

using namespace reprise::testing;

template <class T>
class RoundingKernelsOf : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RoundingKernelsOf, Reals);

template <class T>
void expect_equal_kernels(std::uint64_t seed) {
  const RoundingKernels& slow = portable_rounding(element_of<T>());
  const RoundingKernels& fast = *avx2_rounding(element_of<T>());
  Random random(seed);
  const std::size_t n = random.below(seed % 10 == 0 ? 3000 : 200);
  // Any pattern for what has no limits, and numbers within them; with room for a refusal in the middle.
  std::vector<T> patterns(n), numbers = random_numbers<T>(random, n, T(66000));
  for (T& pattern : patterns) pattern = from_bits<T>(random.next() & random.next());
  const double size = std::ldexp(1, static_cast<int>(random.below(250)) - 125);
  const auto scaled = random_numbers<T>(random, n, static_cast<T>(size));
  std::vector<std::byte> bytes(2 * n + 1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());

  const auto expect_same = [&](const char* what, std::size_t bytes_made, auto make) {
    // At an odd address, with garbage before and a guard behind.
    std::vector<std::byte> by_slow(bytes_made + 2, std::byte{0xA5}), by_fast(bytes_made + 2, std::byte{0xA5});
    const bool taken = make(slow, by_slow.data() + 1);
    EXPECT_EQ(taken, make(fast, by_fast.data() + 1)) << what << " of " << n;
    if (taken) EXPECT_EQ(by_slow, by_fast) << what << " of " << n;
    EXPECT_EQ(by_fast.back(), std::byte{0xA5}) << what << " of " << n;
  };
  const std::size_t coded = int8_bytes(element_of<T>(), n);
  for (const std::vector<T>& array : {patterns, numbers, scaled}) {
    const auto* const data = std::as_bytes(std::span(array)).data();
    expect_same("half", 2 * n, [&](const auto& kernels, std::byte* out) { return kernels.to_half(data, n, out); });
    expect_same("bfloat16", 2 * n,
                [&](const auto& kernels, std::byte* out) { return kernels.to_bfloat16(data, n, out); });
    expect_same("int8", coded, [&](const auto& kernels, std::byte* out) { return kernels.to_int8(data, n, out); });
    std::vector<std::byte> kept(coded);
    if (!slow.to_int8(data, n, kept.data())) continue;
    expect_same("from int8", n * sizeof(T), [&](const auto& kernels, std::byte* out) {
      kernels.from_int8(kept.data(), n, out);
      return true;
    });
  }
  expect_same("from half", n * sizeof(T), [&](const auto& kernels, std::byte* out) {
    kernels.from_half(bytes.data() + 1, n, out);
    return true;
  });
  expect_same("from bfloat16", n * sizeof(T), [&](const auto& kernels, std::byte* out) {
    kernels.from_bfloat16(bytes.data() + 1, n, out);
    return true;
  });
}

TYPED_TEST(RoundingKernelsOf, MakeTheSameBytesWithAndWithoutAvx2) {
  if (!avx2_rounding(element_of<TypeParam>())) GTEST_SKIP() << "this machine has no AVX2 or no F16C";
  for (std::uint64_t seed = 0; seed < testing::cases(3000); ++seed) expect_equal_kernels<TypeParam>(seed);
}

#if defined(__SSE2__)
// LibTorch offers to flush subnormal numbers to zero, for the whole thread.
TYPED_TEST(RoundingKernelsOf, MakeTheSameSixteenBitsInAnyRoundingMode) {
  Random random(6);
  std::vector<TypeParam> numbers;
  while (numbers.size() < 2000) {
    const auto number = from_bits<TypeParam>(random.next());
    if (std::abs(number) < 60000 || std::isnan(number)) numbers.push_back(number);
    numbers.push_back(static_cast<TypeParam>(std::ldexp(1.0 + 0.5 / 128, -120 - static_cast<int>(random.below(30)))));
  }
  const unsigned usual = _mm_getcsr();
  for (const char* name : {"half", "bfloat16"}) {
    const auto coded = encoded(name, numbers);
    const auto back = decoded<TypeParam>(name, *coded, numbers.size());
    for (const unsigned unusual : {usual | _MM_FLUSH_ZERO_ON | 0x40, usual | _MM_ROUND_UP, usual | _MM_ROUND_DOWN}) {
      _mm_setcsr(unusual);
      const auto coded_again = encoded(name, numbers);
      const auto back_again = decoded<TypeParam>(name, *coded, numbers.size());
      _mm_setcsr(usual);
      EXPECT_EQ(coded, coded_again) << name << ' ' << unusual;
      EXPECT_EQ(std::memcmp(back.data(), back_again.data(), back.size() * sizeof(TypeParam)), 0) << name << unusual;
    }
  }
}
#endif

TEST(RoundingKernels, MakeTheSameBytesOfEverySpecialPatternWithAndWithoutAvx2) {
  if (!avx2_rounding(Element::float32)) GTEST_SKIP() << "this machine has no AVX2 or no F16C";
  // Every exponent and sign, with every mantissa that is special to one of the formats, and its neighbours.
  std::vector<std::uint32_t> patterns;
  for (std::uint32_t front = 0; front < 512; ++front) {
    for (std::uint32_t bit = 0; bit <= 23; ++bit) {
      for (std::uint32_t other = 0; other <= bit; ++other) {
        for (const int near : {-1, 0, 1}) {
          const std::uint32_t mantissa = ((1u << bit) | (1u << other)) + static_cast<std::uint32_t>(near);
          patterns.push_back(front << 23 | (mantissa & 0x7FFFFF));
        }
      }
    }
  }
  while (patterns.size() % 16 != 0) patterns.push_back(0);
  std::size_t refused = 0;
  const auto* const data = reinterpret_cast<const std::byte*>(patterns.data());
  for (std::size_t i = 0; i < patterns.size(); i += 16) {
    for (const auto to : {&RoundingKernels::to_half, &RoundingKernels::to_bfloat16}) {
      std::byte by_slow[32], by_fast[32];
      const bool taken = (portable_rounding(Element::float32).*to)(data + 4 * i, 16, by_slow);
      ASSERT_EQ((avx2_rounding(Element::float32)->*to)(data + 4 * i, 16, by_fast), taken) << i;
      if (taken) ASSERT_EQ(std::memcmp(by_slow, by_fast, 32), 0) << i;
      refused += !taken;
    }
  }
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace reprise::rounding_kernels_test
