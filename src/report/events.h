// Events of a trace: what runs once and makes nothing.
#pragma once

#include "reprise/trace/trace.h"

namespace reprise::internal {

// An event, or an operator that only has effects and is not replayed: so the trace of a session has the nodes of
// backward that need bytes of their own while they run.
[[nodiscard]] inline bool is_event(const Trace& trace, Id moment) {
  return !trace.moments[moment].runs || (trace.outputs(moment).empty() && !trace.replayable(moment));
}

}  // namespace reprise::internal
