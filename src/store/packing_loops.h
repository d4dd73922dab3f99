// Loops that a compiler turns into good code for any machine: each is inlined into a function that says which one. T is
// the unsigned type of an element; elements may lie at any address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#define REPRISE_LOOP [[gnu::always_inline]] inline

namespace reprise::internal::packing_loops {

// Elements between two looks at whether it is worth going on.
inline constexpr std::size_t block = 1024;

template <class T>
REPRISE_LOOP T load(const std::byte* data, std::size_t i) {
  T element;
  std::memcpy(&element, data + i * sizeof(T), sizeof(T));
  return element;
}

template <class T>
REPRISE_LOOP void store(std::byte* data, std::size_t i, T element) {
  std::memcpy(data + i * sizeof(T), &element, sizeof(T));
}

template <class T>
REPRISE_LOOP std::size_t first_other(const std::byte* data, std::size_t n, std::uint64_t pattern) {
  const T expected = static_cast<T>(pattern);
  for (std::size_t start = 0; start < n; start += block) {
    const std::size_t end = std::min(n, start + block);
    T differing = 0;
    for (std::size_t i = start; i < end; ++i) differing = static_cast<T>(differing | (load<T>(data, i) ^ expected));
    if (differing == 0) continue;
    for (std::size_t i = start;; ++i) {
      if (load<T>(data, i) != expected) return i;
    }
  }
  return n;
}

// From element `start`, which is a multiple of 8. Without `out`: only the answer.
template <class T, bool write>
REPRISE_LOOP bool to_bits(const std::byte* data, std::size_t start, std::size_t n, std::uint64_t zero,
                          std::uint64_t one, std::byte* out) {
  const T z = static_cast<T>(zero), o = static_cast<T>(one);
  for (std::size_t first = start; first < n; first += 8) {
    unsigned bits = 0;
    bool fits = true;
    const std::size_t end = std::min(n, first + 8);
    for (std::size_t i = first; i < end; ++i) {
      const T element = load<T>(data, i);
      fits &= element == z || element == o;
      bits |= static_cast<unsigned>(element == o) << (i - first);
    }
    if (!fits) return false;
    if constexpr (write) out[first / 8] = static_cast<std::byte>(bits);
  }
  return true;
}

template <class T>
REPRISE_LOOP void from_bits(const std::byte* packed, std::size_t start, std::size_t n, std::uint64_t zero,
                            std::uint64_t one, std::byte* out) {
  const T pattern[2] = {static_cast<T>(zero), static_cast<T>(one)};
  for (std::size_t i = start; i < n; ++i) {
    store<T>(out, i, pattern[std::to_integer<unsigned>(packed[i / 8]) >> i % 8 & 1]);
  }
}

template <class T>
REPRISE_LOOP bool range(const std::byte* data, std::size_t n, std::int64_t& low, std::int64_t& high) {
  using Signed = std::make_signed_t<T>;
  Signed least = std::numeric_limits<Signed>::max(), most = std::numeric_limits<Signed>::min();
  for (std::size_t start = 0; start < n; start += block) {
    const std::size_t end = std::min(n, start + block);
    for (std::size_t i = start; i < end; ++i) {
      const Signed element = load<Signed>(data, i);
      least = std::min(least, element);
      most = std::max(most, element);
    }
    if (static_cast<T>(static_cast<T>(most) - static_cast<T>(least)) > 65535) return false;
  }
  low = least;
  high = most;
  return true;
}

// Differences are taken in T, where they wrap: what is too far away on either side is large.
template <class T, class Narrow>
REPRISE_LOOP bool narrow(const std::byte* data, std::size_t n, std::uint64_t base, std::byte* out) {
  const T b = static_cast<T>(base);
  for (std::size_t start = 0; start < n; start += block) {
    const std::size_t end = std::min(n, start + block);
    T seen = 0;
    for (std::size_t i = start; i < end; ++i) {
      const T difference = static_cast<T>(load<T>(data, i) - b);
      seen = static_cast<T>(seen | difference);
      store<Narrow>(out, i, static_cast<Narrow>(difference));
    }
    if (seen > std::numeric_limits<Narrow>::max()) return false;
  }
  return true;
}

template <class T, class Narrow>
REPRISE_LOOP void widen(const std::byte* packed, std::size_t n, std::uint64_t base, std::byte* out) {
  const T b = static_cast<T>(base);
  for (std::size_t i = 0; i < n; ++i) store<T>(out, i, static_cast<T>(load<Narrow>(packed, i) + b));
}

}  // namespace reprise::internal::packing_loops
