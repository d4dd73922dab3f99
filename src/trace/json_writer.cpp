#include "trace/json_writer.h"

#include <fmt/format.h>

#include <charconv>

#include "reprise/trace/error.h"
#include "trace/json_text.h"
#include "trace/printable.h"

namespace reprise::internal {

JsonWriter& JsonWriter::integer(std::int64_t value) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  return raw({digits, static_cast<std::size_t>(result.ptr - digits)});
}

JsonWriter& JsonWriter::number(double value) {
  char digits[32];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  return raw({digits, static_cast<std::size_t>(result.ptr - digits)});
}

JsonWriter& JsonWriter::string(std::string_view text, std::string_view list, std::size_t index, std::string_view key) {
  if (!append_string(text)) throw BadInput("", fmt::format("{}[{}].{}", list, index, key), "it is not UTF-8");
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text, std::string_view place) {
  if (!append_string(text)) throw BadInput("", std::string(place), "it is not UTF-8");
  return *this;
}

bool JsonWriter::append_string(std::string_view text) {
  text_ += '"';
  std::size_t from = 0, at = 0;  // text[from..at) can be copied as it is
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return false;
    const std::string_view character = text.substr(at, length);
    const bool is_special = character == "\"" || character == "\\";
    if (is_special || !is_printable(character)) {
      text_ += text.substr(from, at - from);
      text_ += is_special ? fmt::format("\\{}", character) : json_escape(character);
      from = at + length;
    }
    at += length;
  }
  text_ += text.substr(from);
  text_ += '"';
  return true;
}

JsonWriter& JsonWriter::ids(const std::vector<Id>& ids) {
  raw("[");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) raw(",");
    integer(ids[i]);
  }
  return raw("]");
}

JsonWriter& JsonWriter::begin_record() {
  first_key_ = true;
  return raw("{");
}

JsonWriter& JsonWriter::key(std::string_view name) {
  raw(first_key_ ? "\"" : ",\"").raw(name).raw("\":");
  first_key_ = false;
  return *this;
}

}  // namespace reprise::internal
