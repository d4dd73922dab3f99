// Text inside JSON: what the reader and the writer have to agree on.
#pragma once

#include <string>
#include <string_view>

#include "reprise/export.h"

namespace reprise::internal {

[[nodiscard]] constexpr bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

// How many bytes the UTF-8 sequence at the start of `text` has; 0 if there is none that is well-formed.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

// For error messages: one line, short, nothing that upsets a terminal. Exported for the LibTorch side, which is a
// library of its own.
[[nodiscard]] REPRISE_EXPORT std::string printable(std::string_view text);

}  // namespace reprise::internal
