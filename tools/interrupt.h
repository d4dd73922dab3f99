// Ctrl-C while planning, or the end of the time: stop and keep what there is.
#pragma once

#include <atomic>

namespace reprise::tools {

// From now on the first Ctrl-C sets the flag, for as long as the program runs; the second one ends the program at once.
[[nodiscard]] const std::atomic<bool>* cancel_on_interrupt();
// The same flag is set after this many seconds, for planners that read no clock.
void cancel_after(double seconds);

}  // namespace reprise::tools
