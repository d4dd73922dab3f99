// What the layers of a chain in a trace cost: the numbers that the chain programme works with.
#pragma once

#include "plan/chains/chain_programme.h"
#include "plan/chains/chain_shape.h"

namespace reprise::internal {

// The bytes are never less than what the interpreter finds for a plan of the programme's steps, and for plain chains
// they are exactly that.
[[nodiscard]] ChainProblem measure_chain(const Trace&, const Timeline&, const ChainShape&);

}  // namespace reprise::internal
