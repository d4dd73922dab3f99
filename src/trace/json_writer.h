// Writes JSON, one record on a line, so that people can read, search and compare files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::internal {

class JsonWriter {
 public:
  // Writes text as it is: punctuation and keys are up to the caller.
  JsonWriter& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  JsonWriter& integer(std::int64_t value);
  JsonWriter& number(double value);  // finite; the shortest text that reads back as the same number
  // Throws BadInput if the text is not UTF-8, which JSON cannot express; `place` names the record in the error.
  JsonWriter& string(std::string_view text, std::string_view list, std::size_t index, std::string_view key = "name");
  JsonWriter& string(std::string_view text, std::string_view place);
  JsonWriter& ids(const std::vector<Id>& ids);

  // Writes a key of an object of which any key may be left out, after a comma for all but the first.
  JsonWriter& begin_record();
  JsonWriter& key(std::string_view name);
  JsonWriter& end_record() { return raw("}"); }

  // Writes a list of `count` records, each on a line of its own: `record(i)` writes one.
  template <typename Record>
  JsonWriter& lines(std::size_t count, Record record) {
    raw("[");
    for (std::size_t i = 0; i < count; ++i) {
      raw(i == 0 ? "\n" : ",\n");
      record(i);
    }
    return raw(count == 0 ? "]" : "\n]");
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  [[nodiscard]] bool append_string(std::string_view text);  // returns false if it is not UTF-8

  std::string text_;
  bool first_key_ = true;
};

}  // namespace reprise::internal
