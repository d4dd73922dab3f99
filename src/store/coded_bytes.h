// What decoding checks before it looks at a byte. Coded bytes may come from a file that another process has written to.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "reprise/store/codec.h"

namespace reprise::internal {

// Returns how many elements these bytes are. Throws Error if a part of one would be left over.
[[nodiscard]] std::size_t decoded_elements(const Codec&, Element, std::size_t bytes);

// Throws Error unless there are as many coded bytes as `expected`, which this many bytes become.
void require_coded_bytes(const Codec&, std::span<const std::byte> coded, Element, std::size_t bytes,
                         std::size_t expected);

// For everything else: "[store] NAME: 123 coded bytes are not what 400 bytes of float32 become: REASON".
[[noreturn]] void refuse_coded_bytes(const Codec&, std::span<const std::byte> coded, Element, std::size_t bytes,
                                     std::string_view reason);

}  // namespace reprise::internal
