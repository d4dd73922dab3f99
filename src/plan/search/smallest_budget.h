// The smallest budget for which a plan can be found: lower it step by step, starting each search from the last plan.
#pragma once

#include "plan/search/effort.h"
#include "plan/search/problem.h"

namespace reprise::internal {

// `start` is a plan that is valid for some budget. The result is valid too; its peak is the smallest found before the
// share of effort was spent, at least `floor`.
[[nodiscard]] Plan find_smallest(const Trace&, const Timeline&, const PlanOptions&, Effort&, double until_share,
                                 Bytes floor, Plan start);

// Returns the plan to begin with: the start of the options if it is valid for this trace and has a smaller peak than
// keeping everything, or else the plan that keeps everything.
[[nodiscard]] Plan lowest_known(const Trace&, const PlanOptions&);

}  // namespace reprise::internal
