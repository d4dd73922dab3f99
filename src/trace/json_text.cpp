#include "trace/json_text.h"

namespace reprise::internal {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto between = [&](std::size_t i, unsigned char low, unsigned char high) {
    return i < text.size() && low <= byte(i) && byte(i) <= high;
  };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (between(0, 0xc2, 0xdf)) return between(1, 0x80, 0xbf) ? 2 : 0;
  if (between(0, 0xe0, 0xef)) {  // no longer forms of two bytes (e0), no surrogates (ed)
    const bool second = between(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && between(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (between(0, 0xf0, 0xf4)) {  // no longer forms of three bytes (f0), nothing above U+10FFFF (f4)
    const bool second = between(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && between(2, 0x80, 0xbf) && between(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

}  // namespace reprise::internal
