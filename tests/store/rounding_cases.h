// What the tests of rounding share: codecs on vectors, and numbers to try them on.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "reprise/store/codec.h"
#include "store/rounding_kernels.h"
#include "support/random_trace.h"

namespace reprise::testing {
using namespace internal;

template <class T>
using Bits = std::conditional_t<std::same_as<T, float>, std::uint32_t, std::uint64_t>;
template <class T>
using Limits = std::numeric_limits<T>;

template <class T>
T from_bits(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<Bits<T>>(bits));
}

// By a codec, and again by its portable loop: both make the same. None: refused.
template <class T>
std::optional<std::vector<std::byte>> encoded(std::string_view name, const std::vector<T>& numbers) {
  const RoundingKernels& portable = portable_rounding(element_of<T>());
  const auto to = name == "half" ? portable.to_half : name == "int8" ? portable.to_int8 : portable.to_bfloat16;
  std::vector<std::byte> coded(codec(name).room(numbers).value()), again(coded.size());
  const auto bytes = codec(name).encode(numbers, coded);
  EXPECT_EQ(to(std::as_bytes(std::span(numbers)).data(), numbers.size(), again.data()), bytes.has_value());
  if (!bytes) return std::nullopt;
  EXPECT_EQ(*bytes, coded.size());
  EXPECT_EQ(coded, again) << name;
  return coded;
}

template <class T>
std::vector<T> decoded(std::string_view name, const std::vector<std::byte>& coded, std::size_t n) {
  const RoundingKernels& portable = portable_rounding(element_of<T>());
  const auto from = name == "half" ? portable.from_half : name == "int8" ? portable.from_int8 : portable.from_bfloat16;
  std::vector<T> numbers(n), again(n);
  codec(name).decode(coded, element_of<T>(), std::as_writable_bytes(std::span(numbers)));
  from(coded.data(), n, std::as_writable_bytes(std::span(again)).data());
  EXPECT_TRUE(std::memcmp(numbers.data(), again.data(), n * sizeof(T)) == 0) << name;  // NaNs as well
  return numbers;
}

template <class T>
std::vector<T> round_trip(std::string_view name, const std::vector<T>& numbers) {
  const auto coded = encoded(name, numbers);
  EXPECT_TRUE(coded) << name;
  return coded ? decoded<T>(name, *coded, numbers.size()) : std::vector<T>(numbers.size());
}

// Of magnitudes up to this one, evenly, and here and there far below.
template <class T>
std::vector<T> random_numbers(Random& random, std::size_t n, T largest) {
  std::vector<T> numbers(n);
  for (T& number : numbers) {
    const auto share = static_cast<T>(static_cast<double>(random.next()) / 0x1p63 - 1);
    number = largest * share;
    if (random.chance(0.1)) number = std::ldexp(number, -static_cast<int>(random.below(400)));
    if (random.chance(0.05)) number = random.chance(0.5) ? T{0} : -T{0};
    if (random.chance(0.05)) number = random.chance(0.5) ? largest : -largest;
  }
  return numbers;
}

}  // namespace reprise::testing
