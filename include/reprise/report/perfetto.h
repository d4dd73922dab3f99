// Writes a plan on a trace as a timeline for viewers of traces: ui.perfetto.dev, chrome://tracing.
#pragma once

#include <string>

#include "reprise/export.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Returns JSON in the Trace Event Format. The track "step" has a complete event for every moment, "replays" for every
// replay, "packing" for every put and get of tiers that count in the budget. Every other tier that is used has a track
// by its own name ("disk"), or two ("host, puts" and "host, gets") if it does both at the same time. The counters are
// "live bytes" by action, the "budget", and what is in each of these tiers ("bytes on disk"). Time is accumulated cost,
// one unit of it as one microsecond, as in recorded steps. What the computation does does not overlap, and begins with
// what it waits for; transfers that a tier does beside it are where the tier does them. The arguments of each event
// name its moment or value, and those of a moment the module that ran it. Throws BadInput if the plan is not valid for
// the trace.
[[nodiscard]] REPRISE_EXPORT std::string to_perfetto(const Trace&, const Plan&);

}  // namespace reprise
