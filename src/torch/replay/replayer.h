// The replayer: has values recomputed from their recipes, below autograd, with private generators.
//
// What does not fit in one replay (replay.h) is recomputed frugally: one value at a time, with nothing pinned but the
// inputs of the operators that wait for theirs.
#pragma once

#include <span>

#include "torch/values/recording.h"

namespace reprise::internal {

// The contents of a value, recomputed if they are not resident. Other outputs that saved tensors wait for are kept on
// the way. Throws ChangedInputError, BudgetError, and what the operators throw.
[[nodiscard]] c10::Storage recompute(Recording&, Id value);

// What running the operator of a value again gives, whether the value is resident or not; the recording does not learn
// of it. `everything`: all that it is made from is recomputed as well, from the leaves. Throws likewise.
enum class Anew { itself, everything };
[[nodiscard]] c10::Storage recompute_anew(Recording&, Id value, Anew);

// These operators again, for a plan: their outputs are kept. What they need and is not there is recomputed, too.
void replay_for_plan(Recording&, std::span<const Id> operators, std::span<const Id> outputs);

// From its packed copy, which stays.
void unpack_for_plan(Recording&, Id value);

// To the tier below: put beside the computation, unless the program has the storage, too, and may write into it.
void put_for_plan(Recording&, Id value);
// From there: begins to get it, for whoever asks next.
void get_for_plan(Recording&, Id value);
// What is written behind is written now: the plan counts on its memory.
void finish_put_for_plan(Recording&, Id value);

}  // namespace reprise::internal
