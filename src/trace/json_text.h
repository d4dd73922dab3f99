// Text inside JSON: what the reader and the writer have to agree on.
#pragma once

#include <cstddef>
#include <string_view>

namespace reprise::internal {

[[nodiscard]] constexpr bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

// Returns the length of the UTF-8 sequence at the start of `text`; 0 if it is not well-formed.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace reprise::internal
