// Revolve (Griewank and Walther 2000) finds the fewest forward steps for a chain of equal layers and a number of slots.
//
// A slot remembers one state; the initial state takes one as well. Forward steps are counted, among them one for each
// layer that tapes: the step whose tape backward uses at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reprise/export.h"
#include "reprise/plan/chain_steps.h"

namespace reprise {

// Returns the fewest forward steps, in closed form; 2^62 if there are more. Throws BadOption for a negative number of
// layers, and for less than one slot.
[[nodiscard]] REPRISE_EXPORT std::int64_t revolve_steps(std::int64_t layers, std::int64_t slots);

// Returns a schedule with exactly revolve_steps(layers, slots) forward steps, which remembers at most `slots` states at
// any time.
[[nodiscard]] REPRISE_EXPORT ChainSteps revolve_schedule(std::int32_t layers, std::int32_t slots);
// Returns the same steps, one after the other. Memory is proportional to the slots.
[[nodiscard]] REPRISE_EXPORT std::unique_ptr<ChainStepSource> revolve_source(std::int32_t layers, std::int32_t slots);

// Returns the steps of backward of layers `layers`..1, from the remembered states and nothing else, with that many
// slots in all. A remembered state keeps its slot until the layers after it are reversed; with those slots, no schedule
// has fewer forward steps. Each state is discarded when it is no longer needed, state `layers` before anything else, so
// nothing is remembered at the end. The time it takes is proportional to the number of steps.
// Throws BadOption unless the remembered states are ascending, the first is 0, the last at most `layers`, and there are
// as many slots as states.
[[nodiscard]] REPRISE_EXPORT ChainSteps reverse_from(std::span<const std::int32_t> remembered, std::int32_t layers,
                                                     std::int32_t slots);
// Returns the same steps, one after the other.
[[nodiscard]] REPRISE_EXPORT std::unique_ptr<ChainStepSource> reverse_source(std::span<const std::int32_t> remembered,
                                                                             std::int32_t layers, std::int32_t slots);

}  // namespace reprise
