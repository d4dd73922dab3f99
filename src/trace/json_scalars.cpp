// The part of the reader that deals with strings, words and numbers; what holds them together is in json_reader.cpp.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "trace/json_reader.h"
#include "trace/json_text.h"
#include "trace/printable.h"

namespace reprise::internal {
namespace {

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

}  // namespace

// ---- strings and words ----------------------------------------------------------------------------------------------

std::string JsonReader::string() {
  expect_kind(Kind::string);
  std::string text;
  read_string(&text);
  return text;
}

void JsonReader::read_string(std::string* into) {
  ++at_;
  std::size_t from = at_;  // not yet copied
  const auto copy = [&] {
    if (into) into->append(text_.substr(from, at_ - from));
  };
  while (true) {
    if (at_end()) unexpected("'\"'");
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') break;
    if (c == '\\') {
      copy();
      read_escape(into);
      from = at_;
    } else if (c < 0x20) {
      syntax_error("no JSON: a control character inside a string");
    } else if (c < 0x80) {
      ++at_;
    } else {
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) syntax_error("no JSON: a string that is not UTF-8");
      at_ += length;
    }
  }
  copy();
  ++at_;
}

void JsonReader::read_escape(std::string* into) {
  ++at_;
  if (at_end()) unexpected("an escape");
  constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  const std::size_t letter = letters.find(text_[at_]);
  if (letter != std::string_view::npos) {
    ++at_;
    if (into) *into += meanings[letter];
    return;
  }
  if (text_[at_] != 'u') unexpected("an escape");
  std::uint32_t code = read_hexadecimal();
  const bool high = 0xd800 <= code && code < 0xdc00;
  if (high && text_.substr(at_).starts_with("\\u")) {
    ++at_;
    const std::uint32_t low = read_hexadecimal();
    code = 0xdc00 <= low && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
  }
  if (0xd800 <= code && code < 0xe000) syntax_error("no JSON: half of a surrogate pair");
  if (into) append_utf8(*into, code);
}

std::uint32_t JsonReader::read_hexadecimal() {
  ++at_;  // u
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_end()) unexpected("four hexadecimal digits");
    const char c = text_[at_];
    const std::string_view digits = "0123456789abcdef";
    const std::size_t digit = digits.find('A' <= c && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
    if (digit == std::string_view::npos) unexpected("four hexadecimal digits");
    code = code << 4 | static_cast<std::uint32_t>(digit);
  }
  return code;
}

void JsonReader::read_word(std::string_view word) {
  for (const char c : word) {
    if (at_end() || text_[at_] != c) unexpected(fmt::format("'{}'", word).c_str());
    ++at_;
  }
}

bool JsonReader::boolean() {
  expect_kind(Kind::boolean);
  const bool value = text_[at_] == 't';
  read_word(value ? "true" : "false");
  return value;
}

// ---- numbers --------------------------------------------------------------------------------------------------------

void JsonReader::read_digits() {
  if (at_end() || !is_digit(text_[at_])) unexpected("a digit");
  while (!at_end() && is_digit(text_[at_])) ++at_;
}

std::string_view JsonReader::read_number(bool& integral) {
  expect_kind(Kind::number);
  const std::size_t from = at_;
  const auto is = [&](char a, char b) { return !at_end() && (text_[at_] == a || text_[at_] == b); };
  integral = true;
  if (is('-', '-')) ++at_;
  if (is('0', '0')) {
    ++at_;
    if (!at_end() && is_digit(text_[at_])) syntax_error("no JSON: a number that starts with 0");
  } else {
    read_digits();
  }
  if (is('.', '.')) {
    integral = false;
    ++at_;
    read_digits();
  }
  if (is('e', 'E')) {
    integral = false;
    ++at_;
    if (is('+', '-')) ++at_;
    read_digits();
  }
  return text_.substr(from, at_ - from);
}

double JsonReader::to_double(std::string_view token) const {
  double value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value)) {
    fail(fmt::format("{} is beyond what a number can be", printable(token)));
  }
  return value;
}

std::int64_t JsonReader::to_integer(std::string_view token) const {
  std::int64_t value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc()) fail(fmt::format("{} is beyond what a number can be", printable(token)));
  return value;
}

double JsonReader::number() {
  bool integral;
  return to_double(read_number(integral));
}

std::int64_t JsonReader::integer() {
  bool integral;
  const std::string_view token = read_number(integral);
  if (!integral) fail(fmt::format("expected a whole number, found {}", printable(token)));
  return to_integer(token);
}

std::int64_t JsonReader::whole() {
  bool integral;
  const std::string_view token = read_number(integral);
  if (integral) return to_integer(token);
  const double value = to_double(token);
  if (value != std::floor(value)) fail(fmt::format("expected a whole number, found {}", printable(token)));
  if (std::fabs(value) >= 0x1p63) fail(fmt::format("{} is beyond what a number can be", printable(token)));
  return static_cast<std::int64_t>(value);
}

Id JsonReader::id() {
  const std::int64_t value = integer();
  if (value < 0 || value > std::numeric_limits<Id>::max()) fail(fmt::format("{} is no id", value));
  return static_cast<Id>(value);
}

}  // namespace reprise::internal
