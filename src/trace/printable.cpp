#include "trace/printable.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/json_text.h"

namespace reprise::internal {
namespace {

constexpr std::size_t longest_name = 60;

// Removes the first character from `text`, or its first byte where no character begins, and returns it.
std::string_view take_character(std::string_view& text) {
  const std::string_view character = text.substr(0, std::max<std::size_t>(1, utf8_length(text)));
  text.remove_prefix(character.size());
  return character;
}

// Returns the code point of a character of up to three bytes, and a larger number for the others.
unsigned code_point(std::string_view character) {
  const auto bits = [&](std::size_t i, unsigned mask) { return static_cast<unsigned char>(character[i]) & mask; };
  switch (character.size()) {
    case 1: return bits(0, 0x7f);
    case 2: return bits(0, 0x1f) << 6 | bits(1, 0x3f);
    case 3: return bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
    default: return 0x10000;
  }
}

bool is_blank(std::string_view character) {
  return character == "\n" || character == "\t";
}

// Returns the text with `replacement(character)` for each character that is not printable.
template <class Replacement>
std::string replaced(std::string_view text, const Replacement& replacement) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::string_view character = take_character(text);
    if (is_printable(character)) {
      result += character;
    } else {
      result += replacement(character);
    }
  }
  return result;
}

}  // namespace

bool is_printable(std::string_view character) {
  if (utf8_length(character) != character.size()) return false;
  const unsigned code = code_point(character);
  const auto between = [code](unsigned first, unsigned last) { return first <= code && code <= last; };
  const bool is_control = code < 0x20 || between(0x7f, 0x9f);
  const bool changes_direction =
      code == 0x61c || between(0x200e, 0x200f) || between(0x202a, 0x202e) || between(0x2066, 0x2069);
  const bool separates_lines = between(0x2028, 0x2029);
  return !is_control && !changes_direction && !separates_lines;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    if (result.size() > longest_name) return result + "...";
    const std::string_view character = take_character(text);
    result += is_printable(character) ? character : "?";
  }
  return result;
}

std::string printable_line(std::string_view text) {
  return replaced(text, [](std::string_view character) { return is_blank(character) ? " " : "?"; });
}

std::string printable_lines(std::string_view text) {
  return replaced(text, [](std::string_view character) { return is_blank(character) ? character : "?"; });
}

std::string json_escape(std::string_view character) {
  return fmt::format("\\u{:04x}", code_point(character));
}

std::string printable_json(std::string_view json) {
  return replaced(json, [](std::string_view character) {
    const bool is_text = utf8_length(character) == character.size();
    const bool is_structure = static_cast<unsigned char>(character[0]) < 0x20;  // strings have these as escapes only
    return is_structure || !is_text ? std::string(character) : json_escape(character);
  });
}

}  // namespace reprise::internal
