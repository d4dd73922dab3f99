#include "trace/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "reprise/trace/error.h"
#include "trace/json_text.h"
#include "trace/printable.h"

namespace reprise::internal {
namespace {

const char* name(JsonReader::Kind kind) {
  switch (kind) {
    case JsonReader::Kind::object: return "an object";
    case JsonReader::Kind::list: return "a list";
    case JsonReader::Kind::string: return "a string";
    case JsonReader::Kind::number: return "a number";
    case JsonReader::Kind::boolean: return "true or false";
    case JsonReader::Kind::null: return "null";
  }
  return "something else";
}

// Our formats need five; what is skipped in a graph file may have more. The limit bounds the memory for `levels_`.
constexpr std::size_t deepest = 1000;

bool is_identifier(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return is_digit(c) || c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
  });
}

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

JsonReader::JsonReader(std::string_view text) : text_(text) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // some editors put a byte order mark in front
}

// ---- where we are, and what is wrong there --------------------------------------------------------------------------

std::string JsonReader::path() const {
  std::string text;
  for (std::size_t i = 0; i < depth_; ++i) {
    const Level& level = levels_[i];
    if (level.before_first) break;  // not inside any of its items yet
    if (level.is_list) {
      text += fmt::format("[{}]", level.index);
    } else if (is_identifier(level.key)) {
      text += (text.empty() ? "" : ".") + printable(level.key);
    } else {
      text += fmt::format("[\"{}\"]", printable(level.key));
    }
    if (text.size() > 200) return text + "...";
  }
  return text;
}

void JsonReader::fail(const std::string& reason) const {
  throw BadInput("", path(), reason);
}

void JsonReader::syntax_error(const std::string& reason) const {
  const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  std::string place = fmt::format("line {}, column {}", line, before.size() - start + 1);
  if (const std::string inside = path(); !inside.empty()) place += fmt::format(" ({})", inside);
  throw BadInput("", place, reason);
}

void JsonReader::unexpected(const char* expected) const {
  if (at_end()) syntax_error(text_.empty() ? "it is empty" : "it ends in the middle: truncated?");
  const std::string_view rest = text_.substr(at_);
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity", "-NaN", "nan", "inf", "-inf"}) {
    if (rest.starts_with(word)) syntax_error(fmt::format("{} is not a JSON number", word));
  }
  const std::size_t length = std::max<std::size_t>(1, utf8_length(rest));
  syntax_error(fmt::format("not JSON: expected {}, found '{}'", expected, printable(rest.substr(0, length))));
}

void JsonReader::expect_kind(Kind kind) {
  const Kind found = peek();
  if (found != kind) fail(fmt::format("expected {}, found {}", name(kind), name(found)));
}

JsonReader::Kind JsonReader::peek() {
  skip_blanks();
  if (at_end()) unexpected("a value");
  const char c = text_[at_];
  if (c == '{') return Kind::object;
  if (c == '[') return Kind::list;
  if (c == '"') return Kind::string;
  if (c == 't' || c == 'f') return Kind::boolean;
  if (c == 'n' && text_.substr(at_).starts_with("nu")) return Kind::null;
  const bool digit_follows = at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
  if (is_digit(c) || (c == '-' && (digit_follows || at_ + 1 == text_.size()))) return Kind::number;
  unexpected("a value");
}

// ---- objects and lists ----------------------------------------------------------------------------------------------

void JsonReader::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

bool JsonReader::accept(char c) {
  skip_blanks();
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonReader::open(bool is_list) {
  if (depth_ == deepest) syntax_error(fmt::format("more than {} lists and objects inside each other", deepest));
  ++at_;
  if (depth_ == levels_.size()) levels_.emplace_back();
  Level& level = levels_[depth_++];
  level.is_list = is_list;
  level.before_first = true;
}

void JsonReader::begin_object() {
  expect_kind(Kind::object);
  open(false);
}

void JsonReader::begin_list() {
  expect_kind(Kind::list);
  open(true);
}

bool JsonReader::next(char closing) {
  Level& level = levels_[depth_ - 1];
  if (accept(closing)) {
    --depth_;
    return false;
  }
  if (!level.before_first && !accept(',')) unexpected(level.is_list ? "',' or ']'" : "',' or '}'");
  level.index = level.before_first ? 0 : level.index + 1;
  level.before_first = false;
  return true;
}

bool JsonReader::next_item() {
  return next(']');
}

bool JsonReader::next_key() {
  if (!next('}')) return false;
  read_key();
  return true;
}

void JsonReader::read_key() {
  skip_blanks();
  if (at_end() || text_[at_] != '"') {
    levels_[depth_ - 1].before_first = true;  // the place is the object, not the key before
    unexpected("a key in quotes");
  }
  std::string& key = levels_[depth_ - 1].key;
  key.clear();
  read_string(&key);
  if (!accept(':')) unexpected("':'");
}

void JsonReader::skip() {
  const std::size_t outside = depth_;
  do {
    bool integral;
    switch (peek()) {
      case Kind::object: open(false); break;
      case Kind::list: open(true); break;
      case Kind::string: read_string(nullptr); break;
      case Kind::number: static_cast<void>(read_number(integral)); break;
      case Kind::boolean: static_cast<void>(boolean()); break;
      case Kind::null: read_word("null"); break;
    }
    // On to the next value inside, through the ends of what is finished.
    while (depth_ > outside && !(levels_[depth_ - 1].is_list ? next_item() : next_key())) continue;
  } while (depth_ > outside);
}

void JsonReader::end() {
  skip_blanks();
  if (!at_end()) unexpected("the end");
}

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
      syntax_error("not JSON: a control character inside a string");
    } else if (c < 0x80) {
      ++at_;
    } else {
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) syntax_error("not JSON: a string that is not UTF-8");
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
  if (0xd800 <= code && code < 0xe000) syntax_error("not JSON: half of a surrogate pair");
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
    if (!at_end() && is_digit(text_[at_])) syntax_error("not JSON: a number that starts with 0");
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
    fail(fmt::format("{} is too large for a number", printable(token)));
  }
  return value;
}

std::int64_t JsonReader::to_integer(std::string_view token) const {
  std::int64_t value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc()) fail(fmt::format("{} is too large for a number", printable(token)));
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
  if (std::fabs(value) >= 0x1p63) fail(fmt::format("{} is too large for a number", printable(token)));
  return static_cast<std::int64_t>(value);
}

Id JsonReader::id() {
  const std::int64_t value = integer();
  if (value < 0 || value > std::numeric_limits<Id>::max()) fail(fmt::format("{} is not an id", value));
  return static_cast<Id>(value);
}

void read_ids(JsonReader& reader, std::vector<Id>& ids) {
  reader.begin_list();
  while (reader.next_item()) ids.push_back(reader.id());
}

}  // namespace reprise::internal
