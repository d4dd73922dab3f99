// A program that is to be run under a budget: where it is, and whether it can be.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace reprise::tools {

// As a shell finds it: a name with a slash is a path, other names are looked for in PATH. None: there is no such file
// that can be executed.
[[nodiscard]] std::optional<std::filesystem::path> find_program(const std::string& name);

// Returns why the system's loader would not preload the file at this path, as a sentence with what to do next; none: it
// would.
[[nodiscard]] std::optional<std::string> preload_obstacle(const std::filesystem::path& library);

// Returns LD_PRELOAD with this library in front of what it has in the environment.
[[nodiscard]] std::string with_preloaded(const std::filesystem::path& library);

// Why the library, which knows LibTorch, cannot work inside of this program, as a sentence with what to do next; none:
// it can. Does not run the program: its headers are read, and the system's loader is asked what it would load.
[[nodiscard]] std::optional<std::string> obstacle(const std::filesystem::path& program,
                                                  const std::filesystem::path& library);

}  // namespace reprise::tools
