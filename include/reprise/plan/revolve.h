// Revolve (Griewank and Walther 2000): the fewest forward steps for a chain of equal layers and a number of slots.
//
// A slot remembers one state; the initial state takes one too. Counted are forward steps, among them one for each layer
// that tapes: the step whose tape backward uses at once.
#pragma once

#include <cstdint>

#include "reprise/plan/chain_steps.h"

namespace reprise {

// The fewest forward steps, in closed form. Throws BadOption for a negative number of layers, and for less than one
// slot. More than 2^62 steps come back as 2^62.
[[nodiscard]] std::int64_t revolve_steps(std::int64_t layers, std::int64_t slots);

// A schedule with exactly that many forward steps and at most that many states remembered at any time.
[[nodiscard]] ChainSteps revolve_schedule(std::int32_t layers, std::int32_t slots);

}  // namespace reprise
