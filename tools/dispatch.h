// Finds out which command is meant, runs it, and turns whatever goes wrong into one line on stderr and an exit code.
#pragma once

#include <vector>

#include "command.h"

namespace reprise::tools {

using AddCommand = void (*)(CLI::App&, Run&);

// Returns the exit code of the program.
[[nodiscard]] int dispatch(int argc, char** argv, const std::vector<AddCommand>& commands);

}  // namespace reprise::tools
