// Random plans for tests of properties: actions that are mostly allowed where they stand.
#pragma once

#include <functional>

#include "reprise/trace/plan.h"
#include "support/random_trace.h"

namespace reprise::testing {

// `allowed` says whether the plan so far breaks no rule but that of being complete. A `nonsense` of 0 gives valid
// plans, unless they end too early, which one in ten does; otherwise it is the probability of an action that is
// anything. The budget is left at 0.
[[nodiscard]] Plan random_plan(Random& random, const Trace& trace, double nonsense,
                               const std::function<bool(const Plan&)>& allowed);

// A valid plan, as the interpreter sees it, with the smallest budget that it needs.
[[nodiscard]] Plan random_valid_plan(Random& random, const Trace& trace);

}  // namespace reprise::testing
