// Foreign text for a terminal: names out of files, paths, what other libraries say.
//
// Not printable are: control characters (C0, DEL and C1), which a terminal executes; line separators and characters
// that change the direction of text, which show something else than what is there; bytes that are not UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "reprise/export.h"

namespace reprise::internal {

// Returns whether one UTF-8 character, or one byte that is part of none, is printable.
[[nodiscard]] bool is_printable(std::string_view character);

// Returns a name for a line: short, with '?' for what is not printable. Exported for the LibTorch side, which is a
// library of its own.
[[nodiscard]] REPRISE_EXPORT std::string printable(std::string_view text);

// Returns a message or a path as one line of any length: newlines and tabs become blanks, the rest as in a name.
[[nodiscard]] REPRISE_EXPORT std::string printable_line(std::string_view text);

// Returns a report with its newlines and tabs.
[[nodiscard]] REPRISE_EXPORT std::string printable_lines(std::string_view text);

// Returns the \u escape of a character that is not printable.
[[nodiscard]] std::string json_escape(std::string_view character);

// Returns the same JSON with what is not printable in its strings as escapes. What is not UTF-8 stays.
[[nodiscard]] std::string printable_json(std::string_view json);

}  // namespace reprise::internal
