// A program that is to be run under a budget: where it is, and whether it can be.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace reprise::tools {

// As a shell finds it: a name with a slash is a path, other names are looked for in PATH. None: there is no such file
// that can be executed.
[[nodiscard]] std::optional<std::filesystem::path> find_program(const std::string& name);

// Why the library, which knows LibTorch, cannot work inside of this program, as a sentence with what to do next; none:
// it can. Does not run the program: its headers are read, and the system's loader is asked what it would load.
[[nodiscard]] std::optional<std::string> obstacle(const std::filesystem::path& program,
                                                  const std::filesystem::path& library);

}  // namespace reprise::tools
