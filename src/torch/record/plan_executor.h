// The executor: does what a plan says, for as long as the pass matches.
//
// Everything it does is hints: if a value that the plan counts on was evicted under pressure, it is recomputed when it
// is asked for, and if a value does not pack this time, it is kept.
#pragma once

#include "torch/values/recording.h"

namespace reprise::internal {

// Executes the steps of the recording's plan right before, or right after, a moment. Without effect if there is no
// plan. May run operators.
void execute_before(Recording&, Id moment);
void execute_after(Recording&, Id moment);

}  // namespace reprise::internal
