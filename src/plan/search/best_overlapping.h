// The anytime planner for traces with tiers that take time beside the computation.
//
// A timetable (timetable.h) adds up costs, so it cannot say what the computation will wait for: that depends on where
// transfers stand, and with_early_transfers moves them when the timetable is a plan. So `best` searches several times,
// and each time takes another share of the time of transfers for cost: none of these tiers at all, all of it, nothing,
// and in the end the share that the computation has really waited for. The interpreter says which plan costs least. A
// plan without these tiers is among them, so they never make a plan cost more.
#pragma once

#include "plan/search/best.h"

namespace reprise::internal {

// Takes the trace, the timeline and the budget of the problem.
[[nodiscard]] BestPlan plan_best_overlapping(const Problem&, const PlanOptions&, Effort&);

}  // namespace reprise::internal
