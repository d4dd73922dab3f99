// A codec keeps an array of a store in fewer bytes.
//
// Every codec of Reprise is a file of its own, src/store/codecs/NAME.cpp, and is found by its name: codec("half"). To
// add one, add that file. A codec of the caller's is an object of a class derived from Codec, and has to outlive every
// store that uses it.
//
// An array that a codec cannot keep as it promises (a value beyond half's range, a third value in a mask) is kept
// exactly instead; a store counts how often that happens.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/export.h"
#include "reprise/store/array.h"

namespace reprise {

// The interface of a codec. It is called from several threads at once; no call may change what another call sees.
class REPRISE_EXPORT Codec {
 public:
  virtual ~Codec() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  // Returns one line for people: what the codec does, and, if it loses something, the bound of its error.
  [[nodiscard]] virtual std::string_view summary() const = 0;
  // True if decoding gives back every bit.
  [[nodiscard]] virtual bool exact() const = 0;

  // Returns the most bytes that coding this array takes at any time: the result and everything else that is needed for
  // it. Empty if the array cannot be coded, as far as is known without coding it.
  [[nodiscard]] virtual std::optional<std::size_t> room(const ArrayView&) const = 0;

  // Codes into `room`, which has as many bytes as were asked for, and returns how many of them, from its start, are the
  // result. Empty if the array cannot be coded; then `room` is garbage. Allocates nothing else.
  [[nodiscard]] virtual std::optional<std::size_t> encode(const ArrayView&, std::span<std::byte> room) const = 0;

  // Throws Error if `coded` cannot be what `encode` makes of `bytes` bytes of these elements. Called for what was read
  // from a file, before `bytes` bytes are allocated. The default accepts any size.
  virtual void check_size(std::span<const std::byte> coded, Element, std::size_t bytes) const {
    static_cast<void>(coded), static_cast<void>(bytes);
  }

  // Decodes `coded`, which `encode` made of an array of these elements, into `out`, which has the size of that array.
  // Throws Error if `coded` cannot come from there.
  virtual void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const = 0;
};

// Returns the codecs of Reprise, ordered by name:
//   bfloat16  real numbers in two bytes, 8 significant bits: |error| <= 2^-8 |x|, and 2^-134 for |x| < 2^-126. NaN and
//             infinities stay what they are. Not coded: a finite number that would become infinite
//   bits      anything of at most two patterns, a bit for each element: masks. Exact
//   exact     a copy. Exact
//   half      real numbers in two bytes, 11 significant bits: |error| <= 2^-11 |x|, and 2^-25 for |x| < 2^-14. NaN and
//             infinities stay what they are. Not coded: a finite number of 65520 or more
//   int8      real numbers in a byte, and one number as it is for each block of 64, the largest |x| in it:
//             |error| <= m / 253 + s / 2, where m is that largest and s the smallest subnormal (float32 2^-149,
//             float64 2^-1074). The largest and zero come back exactly. Not coded: NaN and infinities
//   small     integers of at most 65536 values from the lowest to the highest, in one or two bytes; of at most two
//             values, in a bit. Exact
//   zstd      what zstd makes smaller, at its level 1. Exact
[[nodiscard]] REPRISE_EXPORT const std::vector<const Codec*>& codecs();

// Returns the codec of this name. Throws BadOption, which lists all names, if there is none.
[[nodiscard]] REPRISE_EXPORT const Codec& codec(std::string_view name);

}  // namespace reprise
