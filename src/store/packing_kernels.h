// The loops of packing, for one size of element each, in portable C++ and for AVX2. Both make the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::internal {

struct PackingKernels {
  // The first element that is not this pattern; n if there is none.
  std::size_t (*first_other)(const std::byte* data, std::size_t n, std::uint64_t pattern);
  // Returns whether all elements are one of the two patterns.
  bool (*two_valued)(const std::byte* data, std::size_t n, std::uint64_t zero, std::uint64_t one);
  // Returns false if an element is neither pattern.
  bool (*to_bits)(const std::byte* data, std::size_t n, std::uint64_t zero, std::uint64_t one, std::byte* out);
  void (*from_bits)(const std::byte* packed, std::size_t n, std::uint64_t zero, std::uint64_t one, std::byte* out);

  // Integers. Nullptr where an element is too small for it.
  // The lowest and the highest; false, and soon, if there are more than 65536 values from one to the other.
  bool (*range)(const std::byte* data, std::size_t n, std::int64_t& low, std::int64_t& high);
  // To and from one and two bytes. False if one does not fit.
  bool (*to_bytes)(const std::byte* data, std::size_t n, std::uint64_t base, std::byte* out);
  bool (*to_words)(const std::byte* data, std::size_t n, std::uint64_t base, std::byte* out);
  void (*from_bytes)(const std::byte* packed, std::size_t n, std::uint64_t base, std::byte* out);
  void (*from_words)(const std::byte* packed, std::size_t n, std::uint64_t base, std::byte* out);
};

// For elements of 1, 2, 4 or 8 bytes.
[[nodiscard]] const PackingKernels& portable_packing(int element_bytes);
// Nullptr if this machine has no AVX2.
[[nodiscard]] const PackingKernels* avx2_packing(int element_bytes);

}  // namespace reprise::internal
