// One picture of what a plan does: the live bytes of a step with and without it, and the budget.
#pragma once

#include <string>
#include <string_view>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// SVG that needs nothing else, readable on light and dark backgrounds: keeping everything as a silhouette, the plan in
// front of it by what its bytes are (see layers.h), over time as a share of the step without Reprise. Throws BadInput
// if the plan is not valid for the trace.
[[nodiscard]] std::string memory_picture(const Trace&, const Plan&, std::string_view title);

}  // namespace reprise
