// What a preloaded program is asked to do, from its environment. `reprise run` sets the same variables.
#pragma once

#include <filesystem>
#include <string>

#include "torch/api/option_table.h"

namespace reprise::preload {

// Reads the variables of the option table. Throws BadOption that names a variable, its value and what it must be.
[[nodiscard]] internal::RunSettings read_environment();

// Returns the name with the number of the process for %p, so that several of them do not write the same file.
[[nodiscard]] std::filesystem::path with_process(const std::string& name, int process);

}  // namespace reprise::preload
