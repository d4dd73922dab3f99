// What needs LibTorch is done by a program of its own, reprise-torch: all other commands start at once, and work where
// there is no LibTorch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace reprise::tools {

// What main was given, for the program to be given again.
void with_arguments(char** arguments);

// Where it is; none: this Reprise was built without LibTorch.
[[nodiscard]] std::optional<std::filesystem::path> libtorch_program();

// Becomes that program, with the same arguments. Throws UsageError if it cannot.
int go_on_in_libtorch_program();

// A library of Reprise's own, beside the command or where it is installed; none, likewise.
[[nodiscard]] std::optional<std::filesystem::path> libtorch_library(const std::string& name);

// The sentence for that.
[[nodiscard]] std::string without_libtorch(const std::string& file);

}  // namespace reprise::tools
