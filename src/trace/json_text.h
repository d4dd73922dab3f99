// Text inside JSON: what the reader and the writer have to agree on.
#pragma once

#include <cstddef>
#include <string_view>

namespace reprise::internal {

[[nodiscard]] constexpr bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

// How many bytes the UTF-8 sequence at the start of `text` has; 0 if there is none that is well-formed.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace reprise::internal
