// Plan lowering: makes a plan of a trace ready to be executed on the pass that the trace is of.
#pragma once

#include <memory>

#include "reprise/plan/planner.h"
#include "torch/plans/trace_builder.h"

namespace reprise::internal {

// Returns the plan as steps by moment, in recipes and values of the pass. `simulation` is that of the plan, which is
// valid; `gap` is how far its cost may be from the best one.
[[nodiscard]] std::shared_ptr<const ExecutablePlan> lower_plan(const RecordedPass&, const PassTrace&, const Plan&,
                                                               const Simulation&, double gap);

}  // namespace reprise::internal
