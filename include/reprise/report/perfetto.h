// A plan on a trace as a timeline for viewers of traces: ui.perfetto.dev, chrome://tracing.
#pragma once

#include <string>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Trace Event Format, JSON. Tracks: "step" has a complete event for every moment, "replays" for every replay, "packing"
// for every put and get; counters are "live bytes" by action and the "budget". Time is accumulated cost, one unit of it
// as one microsecond, as in recorded steps; what happens one after the other does not overlap. Each event says in its
// arguments which moment or value it is about, and a moment which module ran it.
// Throws BadInput if the plan is not valid for the trace.
[[nodiscard]] std::string to_perfetto(const Trace&, const Plan&);

}  // namespace reprise
