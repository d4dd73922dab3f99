// Packing keeps arrays of few different values in few bytes, without loss.
//
// Dropout masks, comparisons, token ids and pooling indices fill memory with elements that could be bits or bytes.
// Packing stores them as such, and unpacking gives back every bit. Elements are bit patterns: -0.0 is not 0.0, and NaNs
// differ by their payloads. An array that cannot be restored exactly is refused.
//
//   if (const auto form = packable(data, 4, false)) {
//     std::vector<std::byte> packed(form->bytes());
//     if (pack(*form, data, packed)) ... unpack(*form, packed, data);
//   }
//
// All memory is the caller's, and nothing here allocates. Arrays may start at any address.
//
// The packed form has 16 bytes (for bits the two patterns; otherwise the base and zero, each of 8 bytes in the order of
// the machine), then the elements. For bits, element i is bit i % 8 of byte i / 8, set for the second pattern; bits
// after the last element are zero. Otherwise an element is element - base, in one or two bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/export.h"

namespace reprise {

enum class PackedAs : std::uint8_t {
  bits,   // at most two patterns occur
  bytes,  // integers of at most 256 values from the lowest to the highest
  words,  // integers of at most 65536 values
};
[[nodiscard]] REPRISE_EXPORT const char* name(PackedAs);

// The way in which an array is packed. It depends on the kind of the contents, not on the contents: one form serves the
// mask of every step.
struct REPRISE_EXPORT PackedForm {
  PackedAs as = PackedAs::bits;
  int element_bytes = 0;  // of an element that is not packed: 1, 2, 4 or 8, and more than the packed element has
  std::size_t elements = 0;

  [[nodiscard]] std::size_t bytes() const;        // when packed
  [[nodiscard]] std::size_t plain_bytes() const;  // when not
  bool operator==(const PackedForm&) const = default;
};

// Returns the form with the fewest bytes that these contents fit. Empty if no form fits, or none saves anything. Reads
// no more than it must: in an array of real numbers the third pattern comes within a few elements. `integers` means
// that elements are integers, so that they may become bytes or words; whether they have a sign does not matter.
[[nodiscard]] REPRISE_EXPORT std::optional<PackedForm> packable(std::span<const std::byte> data, int element_bytes,
                                                                bool integers);

// Packs into the first `form.bytes()` bytes of `out`. Returns false if the contents do not fit the form (`packable` is
// not trusted), if the array has another size, or if `out` is too small; `out` is garbage then. The two spans must not
// overlap.
[[nodiscard]] REPRISE_EXPORT bool pack(const PackedForm&, std::span<const std::byte> data, std::span<std::byte> out);

// Unpacks `packed`, which `pack` made with the same form, into `out`, which has `form.plain_bytes()`. Throws
// std::invalid_argument for other sizes. The two spans must not overlap.
REPRISE_EXPORT void unpack(const PackedForm&, std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace reprise
