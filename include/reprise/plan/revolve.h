// Revolve (Griewank and Walther 2000) finds the fewest forward steps for a chain of equal layers and a number of slots.
//
// A slot remembers one state; the initial state takes one, too. Forward steps are counted, among them one for each
// layer that tapes: the step whose tape backward uses at once.
#pragma once

#include <cstdint>

#include "reprise/plan/chain_steps.h"

namespace reprise {

// Returns the fewest forward steps, in closed form; 2^62 if there are more. Throws BadOption for a negative number of
// layers, and for less than one slot.
[[nodiscard]] std::int64_t revolve_steps(std::int64_t layers, std::int64_t slots);

// Returns a schedule with exactly revolve_steps(layers, slots) forward steps, which remembers at most `slots` states at
// any time.
[[nodiscard]] ChainSteps revolve_schedule(std::int32_t layers, std::int32_t slots);

}  // namespace reprise
