// Values of options as text: of a command line, of the environment, of Python. Every function throws a BadOption that
// says what the text must be, and nothing else; the caller knows the option's name, and puts it in front.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reprise/export.h"
#include "reprise/trace/budget.h"

namespace reprise::internal {

// Reads what `Budget` takes.
[[nodiscard]] Budget read_budget(std::string_view text);
[[nodiscard]] REPRISE_EXPORT Bytes read_bytes(std::string_view text);
// Returns a number from 0 to `largest`, which may be infinite.
[[nodiscard]] REPRISE_EXPORT double read_number(std::string_view text, double largest);
// Returns true for "on", false for "off".
[[nodiscard]] REPRISE_EXPORT bool read_switch(std::string_view text);
// Returns the position of the text among these words. '-' and '_' are the same.
[[nodiscard]] REPRISE_EXPORT std::size_t read_word(std::string_view text, std::span<const std::string_view> words);

// Returns how many letters have to be changed, added, left out or swapped with their neighbour to make one of the
// other.
[[nodiscard]] REPRISE_EXPORT std::size_t letters_between(std::string_view one, std::string_view other);

}  // namespace reprise::internal
