// Victims: which value to evict when an allocation does not fit, without knowing what comes.
//
// Cheap to recompute per byte, and saved long ago, which means needed late. Costs are those of everything that would
// have to be replayed, or of the way to the tier below and back if there is one and that is less. Each recording has a
// queue of candidates (victim_queue.h); the best of all at the device of the meter is taken.
//
// Under the arbiter's lock.
#pragma once

#include "torch/memory/meter.h"

namespace reprise::internal {

// Packs or evicts the value with the lowest score, or begins to put it into the tier below, of those that are
// recomputed by operators that surely fit, whatever gradients there are by then, or that the tier has room for. False:
// there is none.
[[nodiscard]] bool evict_a_victim(const Meter&);

// Lets go of values from outside that recipes have and nobody else, where what these make of them has fewer bytes by
// this factor and is still there: it is kept instead. False: there is none.
[[nodiscard]] bool give_up_origins(const Meter&, Bytes factor);

// Packs or evicts the largest value that can be recomputed, so that few have to go: in a tight budget the input of a
// block of attention is small, and comes back only through what is as large as the budget. False: there is none.
[[nodiscard]] bool evict_the_largest(const Meter&);

// Drops the largest packed copy of a value that can be recomputed, too. False: there is none. The last resort: such a
// copy has few bytes, and saves the recomputing of many.
[[nodiscard]] bool drop_a_packed_copy(const Meter&);

// Candidates that were in use when they were looked at, or hard to recompute, are looked at again. False: there are
// none.
[[nodiscard]] bool reconsider_victims(const Meter&);

// A value that cannot be recomputed, and that nobody else has, goes to the tier below. False: there is none, or no room
// for it. Not under the lock.
[[nodiscard]] bool put_away_what_cannot_be_recomputed(const Meter&);

}  // namespace reprise::internal
