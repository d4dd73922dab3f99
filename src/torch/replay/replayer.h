// The replayer: has values recomputed from their recipes, below autograd, with private generators.
//
// What does not fit in one replay (replay.h) is recomputed frugally: one value at a time, with nothing pinned but the
// inputs of the operators that wait for theirs.
#pragma once

#include <span>

#include "torch/values/recording.h"

namespace reprise::internal {

// Returns the contents of a value, recomputed if they are not resident. Other outputs that saved tensors wait for are
// kept on the way. Throws ChangedInputError, BudgetError, and what the operators throw.
[[nodiscard]] c10::Storage recompute(Recording&, Id value);

// Returns what running the operator of a value again gives, whether the value is resident or not, without effect on the
// recording. `everything`: all that it is made from is recomputed as well, from the leaves. Throws likewise.
enum class Anew { itself, everything };
[[nodiscard]] c10::Storage recompute_anew(Recording&, Id value, Anew);

// Runs these operators again, for a plan: their outputs are kept. What they need and is not there is recomputed as
// well.
void replay_for_plan(Recording&, std::span<const Id> operators, std::span<const Id> outputs);

// Has the value from its packed copy, which stays.
void unpack_for_plan(Recording&, Id value);

// Puts the value into the tier below, beside the computation, unless the program has the storage as well, and may write
// into it.
void put_for_plan(Recording&, Id value);
// Begins to get it from there.
void get_for_plan(Recording&, Id value);
// Waits until it has been put: the plan counts on its memory.
void finish_put_for_plan(Recording&, Id value);

}  // namespace reprise::internal
