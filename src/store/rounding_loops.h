// half and bfloat16 are rounded in integers, so that neither the rounding mode nor a processor that flushes subnormal
// numbers to zero changes a bit. Each loop is inlined into a function that says which machine it is for.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "store/packing_loops.h"

namespace reprise::internal::rounding_loops {

using packing_loops::load;
using packing_loops::store;

inline constexpr std::size_t block = packing_loops::block;

// An IEEE format: a sign, an exponent, and this many bits of mantissa behind a leading one that is not written.
template <class T>
struct Format {
  using Bits = std::conditional_t<std::same_as<T, float>, std::uint32_t, std::uint64_t>;
  static constexpr int mantissa = std::same_as<T, float> ? 23 : 52;
  static constexpr int bias = std::same_as<T, float> ? 127 : 1023;
  static constexpr Bits magnitudes = ~Bits{0} >> 1;  // everything but the sign
  static constexpr Bits infinity = Bits{2 * bias + 1} << mantissa;
  static constexpr Bits quiet = Bits{1} << (mantissa - 1);
};

template <int mantissa_bits, int exponent_bias>
struct Narrow {
  static constexpr int mantissa = mantissa_bits;
  static constexpr int bias = exponent_bias;
  static constexpr std::uint16_t infinity = (2 * bias + 1) << mantissa;
  static constexpr std::uint16_t quiet = 1 << (mantissa - 1);
  static constexpr std::uint16_t mantissas = (1 << mantissa) - 1;
};
using Half = Narrow<10, 15>;
using Bfloat16 = Narrow<7, 127>;

// Sets a bit of `beyond` if the number is finite and what it becomes is not.
template <class T, class To>
REPRISE_LOOP std::uint16_t narrow(typename Format<T>::Bits bits, typename Format<T>::Bits& beyond) {
  using From = Format<T>;
  using Bits = typename From::Bits;
  constexpr int dropped = From::mantissa - To::mantissa;
  constexpr Bits lowest = From::bias - To::bias + 1;  // the exponent of the smallest number with a leading one

  const Bits magnitude = bits & From::magnitudes;
  // Subnormal numbers have the smallest exponent and no leading one.
  const Bits exponent = std::max<Bits>(magnitude >> From::mantissa, 1);
  const Bits significand = magnitude - ((exponent - 1) << From::mantissa);
  // Where the exponent cannot go lower, the significand goes right; two places after its last bit it is zero for good.
  const Bits below = exponent < lowest ? std::min<Bits>(lowest - exponent, To::mantissa + 2) : 0;
  const Bits above = exponent > lowest ? exponent - lowest : 0;
  const Bits shift = dropped + below;
  const Bits almost_half = (Bits{1} << (shift - 1)) - 1, odd = significand >> shift & 1;
  // A carry out of the mantissa raises the exponent, which is what it should do.
  const Bits rounded = ((significand + almost_half + odd) >> shift) + (above << To::mantissa);

  const bool finite = magnitude<From::infinity, nan = magnitude> From::infinity;
  const Bits special = To::infinity | (nan ? To::quiet | (magnitude >> dropped & To::mantissas) : 0);
  beyond |= finite && rounded >= To::infinity ? 1 : 0;
  const Bits sign = bits >> (8 * sizeof(Bits) - 1) << 15;
  return static_cast<std::uint16_t>(sign | (finite ? rounded : special));
}

template <class T, class From>
REPRISE_LOOP typename Format<T>::Bits widen(std::uint16_t bits) {
  using To = Format<T>;
  using Bits = typename To::Bits;
  constexpr int added = To::mantissa - From::mantissa;
  const std::uint16_t magnitude = bits & 0x7FFF;
  const Bits sign = Bits{bits} >> 15 << (8 * sizeof(Bits) - 1), shifted = Bits{magnitude} << added;
  const bool nan = magnitude > From::infinity, finite = magnitude < From::infinity;
  Bits finite_bits = shifted;
  if constexpr (To::bias != From::bias) {
    // A subnormal number is a count of the smallest one. In the wider format the product is exact and not subnormal.
    constexpr T smallest = std::bit_cast<T>(Bits{To::bias + 1 - From::bias - From::mantissa} << To::mantissa);
    const Bits counted = std::bit_cast<Bits>(static_cast<T>(static_cast<int>(magnitude)) * smallest);
    finite_bits = magnitude >> From::mantissa == 0 ? counted : shifted + (Bits{To::bias - From::bias} << To::mantissa);
  }
  return sign | (finite ? finite_bits : To::infinity | shifted | (nan ? To::quiet : 0));
}

// From element `start`.
template <class T, class To>
REPRISE_LOOP bool narrow_all(const std::byte* data, std::size_t start, std::size_t n, std::byte* out) {
  using Bits = typename Format<T>::Bits;
  for (; start < n; start += std::min(block, n - start)) {
    const std::size_t end = std::min(n, start + block);
    Bits beyond = 0;
    for (std::size_t i = start; i < end; ++i) store(out, i, narrow<T, To>(load<Bits>(data, i), beyond));
    if (beyond) return false;
  }
  return true;
}

template <class T, class From>
REPRISE_LOOP void widen_all(const std::byte* coded, std::size_t start, std::size_t n, std::byte* out) {
  for (std::size_t i = start; i < n; ++i) store(out, i, widen<T, From>(load<std::uint16_t>(coded, i)));
}

// ---- int8 -----------------------------------------------------------------------------------------------------------

inline constexpr std::size_t int8_block = 64;
inline constexpr double most = 127;

REPRISE_LOOP std::size_t int8_blocks(std::size_t n) {
  return n / int8_block + (n % int8_block != 0);
}

// Arithmetic is in double, where everything there is to a float is far from the limits. The smallest doubles are
// multiplied by this first, which is exact.
template <class T>
REPRISE_LOOP double lift(double largest) {
  return std::same_as<T, double> && largest < 0x1p-900 ? 0x1p120 : 1;
}

// What elements are multiplied by, after `lift`. Zero if all are, which they also are where subnormal numbers are
// flushed.
template <class T>
REPRISE_LOOP double to_int8_factor(double largest) {
  const double lifted = largest * lift<T>(largest);
  return lifted > 0 ? most / lifted : 0;
}

// One block of n elements. `largest` is where the largest magnitude goes, as an element.
template <class T>
REPRISE_LOOP bool block_to_int8(const std::byte* data, std::size_t n, std::byte* largest, std::byte* out) {
  using Bits = typename Format<T>::Bits;
  Bits bits = 0;  // magnitudes are ordered as their bits are
  for (std::size_t i = 0; i < n; ++i) bits = std::max<Bits>(bits, load<Bits>(data, i) & Format<T>::magnitudes);
  if (bits >= Format<T>::infinity) return false;
  store(largest, 0, bits);
  const double m = std::bit_cast<T>(bits), up = lift<T>(m), factor = to_int8_factor<T>(m);
  for (std::size_t i = 0; i < n; ++i) {
    const double element = load<T>(data, i);
    store(out, i, static_cast<std::int8_t>(std::lrint(element * up * factor)));
  }
  return true;
}

template <class T>
REPRISE_LOOP void block_from_int8(const std::byte* coded, std::size_t n, const std::byte* largest, std::byte* out) {
  const T m = load<T>(largest, 0);
  const double up = lift<T>(m), step = m * up / most, down = 1 / up;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int8_t q = load<std::int8_t>(coded, i);
    T element = static_cast<T>(q * step * down);
    // A float comes out of this exactly. For a double 127 * (m / 127) may be next to m, and beyond the largest double.
    if constexpr (std::same_as<T, double>) element = q == most ? m : q == -most ? -m : element;
    store(out, i, element);
  }
}

template <class T>
REPRISE_LOOP bool all_to_int8(const std::byte* data, std::size_t n, std::byte* out) {
  std::byte* const bytes = out + int8_blocks(n) * sizeof(T);
  for (std::size_t b = 0; b < int8_blocks(n); ++b) {
    const std::size_t first = b * int8_block, size = std::min(int8_block, n - first);
    if (!block_to_int8<T>(data + first * sizeof(T), size, out + b * sizeof(T), bytes + first)) return false;
  }
  return true;
}

template <class T>
REPRISE_LOOP void all_from_int8(const std::byte* coded, std::size_t n, std::byte* out) {
  const std::byte* const bytes = coded + int8_blocks(n) * sizeof(T);
  for (std::size_t b = 0; b < int8_blocks(n); ++b) {
    const std::size_t first = b * int8_block, size = std::min(int8_block, n - first);
    block_from_int8<T>(bytes + first, size, coded + b * sizeof(T), out + first * sizeof(T));
  }
}

}  // namespace reprise::internal::rounding_loops
