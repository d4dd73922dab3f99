#include "trace/json_reader.h"

#include <fmt/format.h>

#include <algorithm>

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
    if (rest.starts_with(word)) syntax_error(fmt::format("{} is no number in JSON", word));
  }
  const std::size_t length = std::max<std::size_t>(1, utf8_length(rest));
  syntax_error(fmt::format("no JSON: expected {}, found '{}'", expected, printable(rest.substr(0, length))));
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

void read_ids(JsonReader& reader, std::vector<Id>& ids) {
  reader.begin_list();
  while (reader.next_item()) ids.push_back(reader.id());
}

}  // namespace reprise::internal
