// Ctrl-C while planning: stop and keep what there is.
#pragma once

#include <atomic>

namespace reprise::tools {

// From now on the first Ctrl-C sets the flag, for as long as the program runs; the second one ends the program at once.
[[nodiscard]] const std::atomic<bool>* cancel_on_interrupt();

}  // namespace reprise::tools
