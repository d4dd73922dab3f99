// The loops of the codecs that round real numbers, for float and double each, in portable C++ and for AVX2 with F16C.
// Both make the same bytes. Arrays may start at any address.
//
// half and bfloat16 are IEEE numbers of 16 bits, rounded to nearest, ties to even. An infinity stays one. A NaN stays a
// NaN with its sign and the front of its payload, and is made quiet in both directions, as F16C does it.
//
// int8 keeps blocks of 64 elements. What is coded: the largest magnitude m of every block as an element of the array,
// then a byte q for every element, which stands for q / 127 * m. Because m itself is kept, and not m / 127, a block of
// subnormal numbers is as good as any, and the largest element comes back exactly.
#pragma once

#include <cstddef>

#include "reprise/store/array.h"

namespace reprise::internal {

struct RoundingKernels {
  // n elements to 2 bytes each. False if a finite one would become infinite.
  bool (*to_half)(const std::byte* data, std::size_t n, std::byte* out);
  bool (*to_bfloat16)(const std::byte* data, std::size_t n, std::byte* out);
  void (*from_half)(const std::byte* coded, std::size_t n, std::byte* out);
  void (*from_bfloat16)(const std::byte* coded, std::size_t n, std::byte* out);

  // False if an element is not finite.
  bool (*to_int8)(const std::byte* data, std::size_t n, std::byte* out);
  void (*from_int8)(const std::byte* coded, std::size_t n, std::byte* out);
};

// Returns how many bytes n elements become, of the type that they have.
[[nodiscard]] std::size_t int8_bytes(Element, std::size_t n);

// Returns the fastest for elements of this type here. Nullptr for integers.
[[nodiscard]] const RoundingKernels* rounding(Element);

// For float32 and float64.
[[nodiscard]] const RoundingKernels& portable_rounding(Element);
// Nullptr if this machine has no AVX2 or no F16C.
[[nodiscard]] const RoundingKernels* avx2_rounding(Element);

}  // namespace reprise::internal
