// The replayer: runs recipes again, below autograd, with private generators.
//
// What has to be run is collected first, with an explicit stack; then it is run in the order of the recording, and what
// nobody needs any more is freed at once. An operator in place takes over the storage of its input if it is the last
// one to need it. No lock is held while an operator runs: what it needs is pinned by handles.
#pragma once

#include <span>

#include "torch/recording.h"

namespace reprise::internal {

// The contents of a value, rebuilt if they are not resident. Other outputs that saved tensors wait for are kept on
// the way. Throws ChangedInputError, BudgetError, and what the operators throw.
[[nodiscard]] c10::Storage rebuild(Recording&, Id value);

// What running the operator of a value again gives, whether the value is resident or not; the recording does not learn
// of it. `everything`: all that it is made from is rebuilt as well, from the leaves. Throws likewise.
enum class Anew { itself, everything };
[[nodiscard]] c10::Storage rebuild_anew(Recording&, Id value, Anew);

// These operators again, for a plan: their outputs are kept. What they need and is not there is rebuilt, too.
void replay_for_plan(Recording&, std::span<const Id> operators, std::span<const Id> outputs);

// From its packed copy, which stays.
void unpack_for_plan(Recording&, Id value);

}  // namespace reprise::internal
