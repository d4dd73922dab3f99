// Victims: which value to evict when an allocation does not fit, without knowing what comes.
//
// Cheap to recompute per byte, and saved long ago, which means needed late. Costs are those of everything that would
// have to be replayed, or of the way to the tier below and back if there is one and that is less. Each recording has a
// queue of candidates (victim_queue.h); the best of all at the device of the meter is taken.
//
// All return false if there is none.
#pragma once

#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"

namespace reprise::internal {

// Packs or evicts the value with the lowest score, or begins to put it into the tier below, of those that are
// recomputed by operators that surely fit, whatever gradients there are by then, or that the tier has room for.
[[nodiscard]] bool evict_cheapest(const Arbiter&, const Meter&);

// Releases values from outside that only recipes have, where what these make of them has fewer bytes by this factor and
// is still there: it is kept instead.
[[nodiscard]] bool release_origins(const Arbiter&, const Meter&, Bytes factor);

// Packs or evicts the largest value that can be recomputed, so that few have to go: in a tight budget the input of a
// block of attention is small, and comes back only through what is as large as the budget.
[[nodiscard]] bool evict_largest(const Arbiter&, const Meter&);

// Drops the largest packed copy of a value that can be recomputed as well. The last resort: such a copy has few bytes,
// and saves the recomputing of many.
[[nodiscard]] bool drop_packed_copy(const Arbiter&, const Meter&);

// Looks again at candidates that were in use when they were looked at, or hard to recompute.
[[nodiscard]] bool reconsider_victims(const Arbiter&, const Meter&);

// Puts a value into the tier below that cannot be recomputed, and that only we have. Also false if there is no room for
// it. Takes the lock.
[[nodiscard]] bool offload_irreplaceable(const Meter&);

}  // namespace reprise::internal
