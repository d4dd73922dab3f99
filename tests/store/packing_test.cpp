// Packing: what comes back is what was there, bit for bit, or it is refused.
#include "reprise/store/packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

#include "store/packing_kernels.h"
#include "support/cases.h"
#include "support/random_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::Random;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& elements) {
  return std::as_bytes(std::span(elements));
}

// Packs and unpacks; whether it was taken at all is for the caller. What is taken comes back.
template <class T>
bool comes_back(const PackedForm& form, const std::vector<T>& elements) {
  // Garbage before, and a guard behind: nothing is assumed about either, and nothing behind the end is written.
  std::vector<std::byte> packed(form.bytes() + 1, std::byte{0xA5});
  if (!pack(form, bytes_of(elements), std::span(packed).first(form.bytes()))) return false;
  EXPECT_EQ(packed.back(), std::byte{0xA5});
  std::vector<T> back(elements.size() + 1, T{0x5A});
  unpack(form, std::span(packed).first(form.bytes()), std::as_writable_bytes(std::span(back).first(elements.size())));
  EXPECT_EQ(back.back(), T{0x5A});
  back.pop_back();
  EXPECT_EQ(back, elements);
  return true;
}

template <class T>
std::optional<PackedForm> form_of(const std::vector<T>& elements, bool integers = true) {
  return packable(bytes_of(elements), sizeof(T), integers);
}

template <class T>
std::vector<T> random_mask(Random& random, std::size_t n, T zero, T one) {
  std::vector<T> mask(n);
  for (T& element : mask) element = random.chance(0.5) ? zero : one;
  return mask;
}

template <class T>
class PackingOf : public ::testing::Test {};
using Elements = ::testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(PackingOf, Elements);

TYPED_TEST(PackingOf, MasksOfAnyLengthComeBack) {
  for (std::uint64_t seed = 0; seed < testing::cases(300); ++seed) {
    Random random(seed);
    const auto zero = static_cast<TypeParam>(random.next()), one = static_cast<TypeParam>(random.next());
    const auto mask = random_mask(random, seed < 200 ? seed : random.below(5000), zero, one);
    const PackedForm form{PackedAs::bits, sizeof(TypeParam), mask.size()};
    EXPECT_TRUE(comes_back(form, mask)) << mask.size();
    if (const auto found = form_of(mask)) {
      EXPECT_EQ(*found, form);
      EXPECT_LT(form.bytes(), mask.size() * sizeof(TypeParam));
    } else {
      EXPECT_GE(form.bytes(), mask.size() * sizeof(TypeParam));
    }
  }
}

TYPED_TEST(PackingOf, MasksComeBackWhereverTheSecondPatternFirstOccurs) {
  constexpr std::size_t n = 2100;
  for (std::size_t at = 0; at <= n; at += at < 100 ? 1 : 37) {
    std::vector<TypeParam> mask(n, TypeParam{7});
    for (std::size_t i = at; i < n; i += 3) mask[i] = TypeParam{9};
    ASSERT_EQ(form_of(mask), (PackedForm{PackedAs::bits, sizeof(TypeParam), n})) << at;
    EXPECT_TRUE(comes_back(*form_of(mask), mask)) << at;
  }
}

TYPED_TEST(PackingOf, MasksWithAThirdPatternAnywhereAreRefused) {
  constexpr std::size_t n = 1187;  // more than one block, and a rest
  Random random(3);
  const auto mask = random_mask(random, n, TypeParam{0}, TypeParam{1});
  const PackedForm form{PackedAs::bits, sizeof(TypeParam), n};
  for (std::size_t at = 0; at < n; ++at) {
    auto spoilt = mask;
    spoilt[at] = static_cast<TypeParam>(TypeParam{1} << (8 * sizeof(TypeParam) - 1));
    EXPECT_FALSE(form_of(spoilt, false)) << at;
    EXPECT_FALSE(comes_back(form, spoilt)) << at;
  }
}

TYPED_TEST(PackingOf, RandomElementsAreRefusedOrComeBack) {
  for (std::uint64_t seed = 0; seed < testing::cases(300); ++seed) {
    Random random(seed);
    // Few or many patterns, near to each other or far apart.
    std::vector<TypeParam> elements(random.below(700));
    const std::uint64_t base = random.next(), spread = std::uint64_t{1} << random.below(64);
    for (TypeParam& element : elements) element = static_cast<TypeParam>(base + random.below(spread));
    if (const auto form = form_of(elements)) {
      EXPECT_TRUE(comes_back(*form, elements));
      EXPECT_LT(form->bytes(), form->plain_bytes());
    }
    for (const PackedAs as : {PackedAs::bits, PackedAs::bytes, PackedAs::words}) {
      (void)comes_back({as, sizeof(TypeParam), elements.size()}, elements);
    }
  }
}

TYPED_TEST(PackingOf, ArraysAtAnyAddressComeBack) {
  Random random(5);
  const auto mask = random_mask(random, 300, TypeParam{2}, TypeParam{3});
  const PackedForm form{PackedAs::bits, sizeof(TypeParam), mask.size()};
  for (std::size_t shift = 0; shift < 9; ++shift) {
    std::vector<std::byte> moved(shift + form.plain_bytes()), packed(shift + form.bytes()), back(moved.size());
    std::memcpy(moved.data() + shift, mask.data(), form.plain_bytes());
    EXPECT_TRUE(packable(std::span(moved).subspan(shift), sizeof(TypeParam), false));
    ASSERT_TRUE(pack(form, std::span(moved).subspan(shift), std::span(packed).subspan(shift)));
    unpack(form, std::span(packed).subspan(shift), std::span(back).subspan(shift));
    EXPECT_EQ(back, moved);
  }
}

// Both on the same data, with room for a refusal in the middle.
template <class T>
void expect_equal_kernels(std::uint64_t seed) {
  const PackingKernels& slow = portable_packing(sizeof(T));
  const PackingKernels& fast = *avx2_packing(sizeof(T));
  Random random(seed);
  const std::size_t n = random.below(3000);
  const T zero = static_cast<T>(random.next()), one = static_cast<T>(random.next());
  auto data = random_mask(random, n, zero, one);
  const auto* bytes = bytes_of(data).data();
  const auto expect_same = [&](const char* what, std::size_t size, auto make) {
    std::vector<std::byte> by_slow(size), by_fast(size);
    const bool taken = make(slow, by_slow.data());
    EXPECT_EQ(taken, make(fast, by_fast.data())) << what << " of " << n;
    if (taken) EXPECT_EQ(by_slow, by_fast) << what << " of " << n;
  };

  EXPECT_EQ(slow.first_other(bytes, n, zero), fast.first_other(bytes, n, zero));
  std::vector<std::byte> bits((n + 7) / 8);
  ASSERT_TRUE(slow.to_bits(bytes, n, zero, one, bits.data()));
  expect_same("unpacking bits", n * sizeof(T), [&](const PackingKernels& kernels, std::byte* out) {
    kernels.from_bits(bits.data(), n, zero, one, out);
    return true;
  });
  for (const bool spoilt : {false, true}) {
    if (spoilt && n > 0) data[random.below(n)] = static_cast<T>(random.next());
    EXPECT_EQ(slow.two_valued(bytes, n, zero, one), fast.two_valued(bytes, n, zero, one));
    expect_same("packing bits", bits.size(), [&](const PackingKernels& kernels, std::byte* out) {
      return kernels.to_bits(bytes, n, zero, one, out);
    });
  }
  if constexpr (sizeof(T) > 1) {
    const T base = static_cast<T>(random.next());
    const std::uint64_t spread = random.chance(0.5) ? 256 : random.chance(0.5) ? 65536 : 65600;
    for (T& element : data) element = static_cast<T>(base + random.below(spread));
    std::int64_t low[2] = {}, high[2] = {};
    const bool narrow = slow.range(bytes, n, low[0], high[0]);
    EXPECT_EQ(narrow, fast.range(bytes, n, low[1], high[1]));
    EXPECT_EQ(low[0], low[1]);
    EXPECT_EQ(high[0], high[1]);
    for (const auto& [to, from, size] : {std::tuple{&PackingKernels::to_bytes, &PackingKernels::from_bytes, 1},
                                         std::tuple{&PackingKernels::to_words, &PackingKernels::from_words, 2}}) {
      if (sizeof(T) == 2 && size == 2) continue;
      std::vector<std::byte> packed(n * static_cast<std::size_t>(size));
      expect_same("packing integers", packed.size(),
                  [&](const PackingKernels& kernels, std::byte* out) { return (kernels.*to)(bytes, n, base, out); });
      if (!(slow.*to)(bytes, n, base, packed.data())) continue;
      expect_same("unpacking integers", n * sizeof(T), [&](const PackingKernels& kernels, std::byte* out) {
        (kernels.*from)(packed.data(), n, base, out);
        return true;
      });
    }
  }
}

TYPED_TEST(PackingOf, MakesTheSameBytesWithAndWithoutAvx2) {
  if (!avx2_packing(sizeof(TypeParam))) GTEST_SKIP() << "this machine has no AVX2";
  for (std::uint64_t seed = 0; seed < testing::cases(300); ++seed) expect_equal_kernels<TypeParam>(seed);
}

TEST(Packing, KeepsNaNsAndTheSignOfZero) {
  const auto quiet = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
  const auto minus_zero = std::bit_cast<std::uint32_t>(-0.0f);
  for (const auto& [one, other] : {std::pair{0u, minus_zero}, {quiet, quiet + 1}, {quiet, quiet | 0x80000000u}}) {
    std::vector<std::uint32_t> elements(100, one);
    elements[63] = other;
    ASSERT_TRUE(form_of(elements, false));
    EXPECT_TRUE(comes_back(*form_of(elements, false), elements));
    elements[99] = 1;
    EXPECT_FALSE(form_of(elements, false)) << "equal numbers with different bits are different";
  }
}

TEST(Packing, OfADropoutMaskIsABitForEachElement) {
  const float kept = 1 / (1 - 0.1f);
  Random random(1);
  std::vector<std::uint32_t> mask =
      random_mask(random, 1000, std::bit_cast<std::uint32_t>(0.0f), std::bit_cast<std::uint32_t>(kept));
  const auto form = form_of(mask, false);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->as, PackedAs::bits);
  EXPECT_EQ(form->bytes(), 16u + 125u);
  EXPECT_EQ(form->plain_bytes(), 4000u);
}

TEST(Packing, OfAnArrayWithOnePatternComesBack) {
  const std::vector<std::uint64_t> elements(77, 0x7FF8000000000001);
  ASSERT_TRUE(form_of(elements, false));
  EXPECT_TRUE(comes_back(*form_of(elements, false), elements));
}

template <class T>
void expect_borders(T low) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto plus = [&](std::uint64_t n) { return static_cast<T>(static_cast<Unsigned>(low) + n); };
  for (std::size_t at = 0; at < 130; ++at) {
    std::vector<T> elements(1130, plus(1));
    elements[1000] = low;  // found late
    elements[at] = plus(255);
    const auto bytes = form_of(elements);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->as, PackedAs::bytes);
    EXPECT_TRUE(comes_back(*bytes, elements));

    elements[at] = plus(256);
    EXPECT_FALSE(comes_back(*bytes, elements));
    const auto words = form_of(elements);
    if (sizeof(T) == 2) {
      EXPECT_FALSE(words) << "nothing is saved";
      continue;
    }
    ASSERT_TRUE(words);
    EXPECT_EQ(words->as, PackedAs::words);
    EXPECT_TRUE(comes_back(*words, elements));

    elements[at] = plus(65535);
    EXPECT_EQ(form_of(elements), words);
    EXPECT_TRUE(comes_back(*words, elements));
    elements[at] = plus(65536);
    EXPECT_FALSE(form_of(elements));
    EXPECT_FALSE(comes_back(*words, elements));
  }
}

TEST(Packing, OfIntegersGoesAsFarAsTheRangeDoes) {
  for (const std::int64_t low : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{-128}, std::int64_t{1000}}) {
    expect_borders<std::int16_t>(static_cast<std::int16_t>(low));
    expect_borders<std::int32_t>(static_cast<std::int32_t>(low));
    expect_borders<std::int64_t>(low);
  }
  expect_borders(std::numeric_limits<std::int16_t>::min());
  expect_borders(std::numeric_limits<std::int32_t>::min());
  expect_borders(std::numeric_limits<std::int64_t>::min());
  expect_borders<std::int32_t>(std::numeric_limits<std::int32_t>::max() - 65536);
  expect_borders<std::int64_t>(std::numeric_limits<std::int64_t>::max() - 65536);
}

TEST(Packing, OfTheSmallestAndTheLargestIntegerTogetherIsRefused) {
  std::vector<std::int64_t> elements(100, 0);
  elements[40] = std::numeric_limits<std::int64_t>::min();
  elements[41] = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(form_of(elements));
  EXPECT_FALSE(comes_back({PackedAs::words, 8, elements.size()}, elements));
}

TEST(Packing, OfRealNumbersNeverLooksAtTheirRange) {
  std::vector<std::uint32_t> elements(100);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::uint32_t>(i);
  EXPECT_TRUE(form_of(elements, true));
  EXPECT_FALSE(form_of(elements, false));
}

TEST(Packing, TakesTheSmallestForm) {
  EXPECT_EQ(form_of(std::vector<std::int64_t>(64, -5))->as, PackedAs::bits);
  std::vector<std::int64_t> elements(64, 3);
  elements[1] = 4;
  elements[2] = 300;
  EXPECT_EQ(form_of(elements)->as, PackedAs::words);
  elements[2] = 5;
  EXPECT_EQ(form_of(elements)->as, PackedAs::bytes);
}

TEST(Packing, OneFormServesOtherContentsOfItsKind) {
  std::vector<std::uint32_t> mask(100, 1);
  const PackedForm form = *form_of(mask, false);
  std::fill(mask.begin() + 30, mask.end(), 2u);
  EXPECT_TRUE(comes_back(form, mask)) << "another pattern";
  std::vector<std::int32_t> indices(100, 65535);
  indices[0] = 0;
  indices[1] = 1;
  const PackedForm words = *form_of(indices);
  for (std::int32_t& index : indices) index -= 70000;
  EXPECT_TRUE(comes_back(words, indices)) << "another base";
}

TEST(Packing, IsRefusedWhereItSavesNothing) {
  EXPECT_FALSE(packable({}, 4, false));
  EXPECT_FALSE(form_of(std::vector<std::uint8_t>(19, 1)));
  EXPECT_TRUE(form_of(std::vector<std::uint8_t>(20, 1)));
  EXPECT_FALSE(form_of(std::vector<std::int64_t>(2, 1)));
  EXPECT_TRUE(form_of(std::vector<std::int64_t>(3, 1)));
}

TEST(Packing, OfElementsThatItDoesNotKnowIsRefused) {
  const std::vector<std::uint8_t> zeros(480, 0);
  for (const int size : {-4, 0, 3, 5, 16, 100}) {
    EXPECT_FALSE(packable(bytes_of(zeros), size, true)) << size;
    const PackedForm form{PackedAs::bits, size, size > 0 ? zeros.size() / static_cast<std::size_t>(size) : 0};
    std::vector<std::byte> out(1000);
    EXPECT_FALSE(pack(form, bytes_of(zeros), out)) << size;
  }
  EXPECT_FALSE(packable(bytes_of(zeros).first(479), 8, true)) << "a part of an element";
  EXPECT_FALSE(pack({PackedAs::bytes, 1, 480}, bytes_of(zeros), std::span<std::byte>{}));
}

TEST(Packing, IntoOrFromOtherSizesIsRefused) {
  const std::vector<std::uint32_t> mask(100, 1);
  const PackedForm form{PackedAs::bits, 4, 100};
  std::vector<std::byte> packed(form.bytes()), plain(form.plain_bytes());
  EXPECT_FALSE(pack(form, bytes_of(mask).first(396), packed));
  EXPECT_FALSE(pack(form, bytes_of(mask), std::span(packed).first(form.bytes() - 1)));
  ASSERT_TRUE(pack(form, bytes_of(mask), packed));
  EXPECT_THROW(unpack(form, std::span(packed).first(form.bytes() - 1), plain), std::invalid_argument);
  EXPECT_THROW(unpack(form, packed, std::span(plain).first(396)), std::invalid_argument);
  EXPECT_THROW(unpack({PackedAs::words, 2, 100}, packed, plain), std::invalid_argument);
}

TEST(Packing, FormsHaveNames) {
  EXPECT_STREQ(name(PackedAs::bits), "bits");
  EXPECT_STREQ(name(PackedAs::bytes), "bytes");
  EXPECT_STREQ(name(PackedAs::words), "words");
}

}  // namespace
}  // namespace reprise
