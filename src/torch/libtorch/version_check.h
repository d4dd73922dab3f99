// Which LibTorch is in this process, and whether it is the one that Reprise was compiled against.
//
// Reprise uses insides of LibTorch that change from version to version without notice. In a process with another
// version nothing of Reprise is put in LibTorch's place, so that the program runs as it would without, and sessions
// refuse.
#pragma once

#include <string>

namespace reprise::internal {

// Returns what the library says of itself: "2.13.0".
[[nodiscard]] std::string running_libtorch();
// Returns what its headers said when this was compiled.
[[nodiscard]] std::string compiled_libtorch();

[[nodiscard]] bool runs_as_compiled();

}  // namespace reprise::internal
