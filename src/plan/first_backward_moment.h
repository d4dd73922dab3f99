// Finds the moment at which backward begins in a trace.
#pragma once

#include "reprise/trace/timeline.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// Returns the first moment of backward: the first event, or, in a trace without events (a graph file), the moment at
// which running everything once has most bytes live. Zero if the trace has no moments.
[[nodiscard]] Id first_backward_moment(const Trace&, const Timeline&);
[[nodiscard]] Id first_backward_moment(const Trace&);

}  // namespace reprise::internal
