// The terminal behind stderr, if there is one: for lines that are drawn again and again.
#pragma once

#include <cstddef>
#include <string_view>

namespace reprise::tools::terminal {

[[nodiscard]] bool is_there();
[[nodiscard]] std::size_t columns();

// In place of the line that was shown before. It must not be longer than the terminal is wide.
void show(std::string_view line);

}  // namespace reprise::tools::terminal
