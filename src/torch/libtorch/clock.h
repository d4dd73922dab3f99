// Clocks.
#pragma once

namespace reprise::internal {

// Returns the CPU time of this thread in microseconds. A system call.
[[nodiscard]] double thread_microseconds();
// Returns a time in microseconds, for what is so short that it is hardly ever interrupted. No system call.
[[nodiscard]] double wall_microseconds();

}  // namespace reprise::internal
