// Overlaps transfers with computation: a put begins before its value has to go, a get before its value is needed.
//
// Planners put a value where it is dropped and get it where it is needed, so the step would wait for every transfer.
// Here puts and gets are moved to where their tier can begin early enough, and where that is not possible, the drop
// after a put is delayed. Gets and drops that are moved hold memory for longer, so they go only as far as the peak
// allows.
#pragma once

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// Returns whether the transfers of a tier take time while the computation goes on.
[[nodiscard]] bool any_overlaps(const std::vector<Tier>&);

// Returns the same plan with its transfers moved. The plan has to be valid for the trace; the result is valid as well,
// at no higher cost and no higher peak, whatever its budget.
[[nodiscard]] Plan with_early_transfers(const Trace&, const Plan&);

}  // namespace reprise::internal
