// Where a trace turns from forward to backward.
#pragma once

#include "reprise/trace/timeline.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// The first moment of backward: the first event, or, in a trace without events, the moment at which running everything
// once has most bytes live (there is no other sign in a graph file). The number of moments if there is no moment.
[[nodiscard]] Id turn_of(const Trace&, const Timeline&);
[[nodiscard]] Id turn_of(const Trace&);

}  // namespace reprise::internal
