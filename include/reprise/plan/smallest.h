// Finds the smallest budget that works.
#pragma once

#include "reprise/export.h"
#include "reprise/plan/planner.h"

namespace reprise {

// Returns the plan with the smallest peak that can be found with the effort that the options allow (time_limit or
// moves, seed, start, cancel; budget and planner are ignored). Its `budget` is its peak.
[[nodiscard]] REPRISE_EXPORT Plan smallest_plan(const Trace&, const PlanOptions&);

}  // namespace reprise
