// Something is tried in a copy of the process (fork), which tells in the end how it went: whatever it does to the
// program is gone with the copy.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace reprise::internal {

// `fork`, with whatever another language wants to be done around it.
using MakeCopy = std::function<pid_t()>;

// What `tell` returns in the copy, where this thread is the only one. An error that leaves it, or the end of the copy
// before it has told everything, is a MeasurementError that begins with `doing`.
[[nodiscard]] std::string told_by_copy(const char* doing, const std::function<std::string()>& tell, const MakeCopy&);

}  // namespace reprise::internal
