// Transfers beside computation: where a plan has room, reading begins earlier, and memory that is being written stays
// longer.
//
// A plan counts transfers as if nothing happened meanwhile, so that they are never free. When it is executed, a get
// begins to read and a put begins to write, on the thread of the disk; whoever asks for the value, or drops it, waits.
// So a get that stands long before the value is needed, and a drop long after the put, leave time for them. Both hold
// memory for longer, and are moved only where the plan has it: its peak stays what it is, which the interpreter checks.
#pragma once

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// The same plan with the gets of this tier as early as they can use, and the drops after its puts as late. The plan is
// valid for the trace, and so is what is returned, at the same cost and with no higher peak.
[[nodiscard]] Plan with_overlap(const Trace&, const Plan&, Id tier);

}  // namespace reprise::internal
