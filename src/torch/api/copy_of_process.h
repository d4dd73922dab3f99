// Tries something in a copy of the process (fork), which reports in the end how it went: whatever it does to the
// program is gone with the copy.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace reprise::internal {

// `fork`, with whatever another language wants to be done around it.
using MakeCopy = std::function<pid_t()>;

// Returns what `make_report` returns in the copy, where this thread is the only one. Throws MeasurementError, which
// begins with `doing`, if that throws, or if the copy ends before it has written everything.
[[nodiscard]] std::string report_of_copy(const char* doing, const std::function<std::string()>& make_report,
                                         const MakeCopy&);

}  // namespace reprise::internal
