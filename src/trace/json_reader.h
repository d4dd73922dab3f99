// Reads JSON piece by piece, in the order of the file, straight into whatever the caller fills.
//
// Why not a document tree: a trace of a million operators is a hundred megabytes of JSON, and the tree would be many
// times that. Why not callbacks: code that asks for what it expects reads like the grammar in docs/formats.md, and the
// reader knows at any time where it is, so that every error can say so. Nothing here is recursive: nesting costs no
// stack.
//
//   reader.begin_list();
//   while (reader.next_item()) ids.push_back(reader.id());
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::internal {

class JsonReader {
 public:
  // The text has to outlive the reader.
  explicit JsonReader(std::string_view text);

  // Returns the kind of the next value, by its first character; reading the value shows whether it is well-formed.
  enum class Kind { object, list, string, number, boolean, null };
  [[nodiscard]] Kind peek();

  // After `begin_object`, `next_key` reads the next key; it returns false at the end of the object. After each key its
  // value has to be read or skipped; `key` is invalid then. Lists likewise.
  void begin_object();
  [[nodiscard]] bool next_key();
  [[nodiscard]] const std::string& key() const { return levels_[depth_ - 1].key; }
  void begin_list();
  [[nodiscard]] bool next_item();

  [[nodiscard]] std::string string();
  [[nodiscard]] bool boolean();
  [[nodiscard]] double number();         // finite
  [[nodiscard]] std::int64_t integer();  // written as one
  [[nodiscard]] std::int64_t whole();    // an integer, however written: 1e6
  [[nodiscard]] Id id();                 // an integer that can be one, not negative
  void skip();                           // anything
  void end();                            // nothing but blanks up to the end of the text

  // Throws BadInput with the place where the reader is, as a path: "operators[3].inputs[1]".
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  struct Level {
    bool is_list = false;
    bool before_first = true;
    std::size_t index = 0;  // of a list
    std::string key;        // of an object
  };

  [[nodiscard]] std::string path() const;
  [[noreturn]] void syntax_error(const std::string& reason) const;
  [[noreturn]] void unexpected(const char* expected) const;
  void expect_kind(Kind kind);
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  void skip_blanks();
  [[nodiscard]] bool accept(char c);  // blanks, then this
  void open(bool is_list);
  [[nodiscard]] bool next(char closing);
  void read_key();
  void read_string(std::string* into);  // nullptr: only checks it
  void read_escape(std::string* into);
  [[nodiscard]] std::uint32_t read_hexadecimal();
  void read_word(std::string_view word);
  // Returns the characters of a number; `integral` says whether it has neither a point nor an exponent.
  [[nodiscard]] std::string_view read_number(bool& integral);
  void read_digits();
  [[nodiscard]] double to_double(std::string_view token) const;
  [[nodiscard]] std::int64_t to_integer(std::string_view token) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;      // objects and lists that are open
  std::vector<Level> levels_;  // at least `depth_`; kept for the next object, with the memory of their keys
};

// Reads an object with these keys and no others, each at most once: calls `field(i)` to read the value of keys[i].
// Returns the keys that were there, as bits.
template <std::size_t Count, typename Field>
std::uint32_t read_record(JsonReader& reader, const std::array<std::string_view, Count>& keys, Field field) {
  static_assert(Count <= 32);
  std::uint32_t seen = 0;
  reader.begin_object();
  while (reader.next_key()) {
    std::size_t i = 0;
    while (i < Count && keys[i] != reader.key()) ++i;
    if (i == Count) reader.fail("unknown key");
    if (seen >> i & 1) reader.fail("this key appears twice");
    seen |= std::uint32_t{1} << i;
    field(i);
  }
  return seen;
}

// Reads a list of ids.
void read_ids(JsonReader& reader, std::vector<Id>& ids);

}  // namespace reprise::internal
