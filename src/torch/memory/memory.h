// How much memory this process may use.
#pragma once

#include <filesystem>

#include "reprise/trace/trace.h"

namespace reprise::internal {

// Returns the smallest limit of the control groups that the process is in (version 2: `memory.max`, version 1:
// `memory.limit_in_bytes`; its own group and all above it that can be seen), or else all memory of the machine. `root`
// is where /proc and /sys are, for tests. Throws Error if not even the machine's memory can be read.
[[nodiscard]] Bytes memory_limit(const std::filesystem::path& root = "/");

// Returns this share of it. Throws BadOption for a share that is not above 0 and at most 1.
[[nodiscard]] Bytes fraction_of_memory(double share, const std::filesystem::path& root);

}  // namespace reprise::internal
