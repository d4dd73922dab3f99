// Draws what a plan does: the live bytes of a step with and without it, and the budget.
#pragma once

#include <string>
#include <string_view>

#include "reprise/export.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Returns a self-contained SVG picture, readable on light and dark backgrounds: keeping everything as a silhouette, and
// the plan in front of it by what the bytes are, over time as a share of the step without Reprise. Throws BadInput if
// the plan is not valid for the trace.
[[nodiscard]] REPRISE_EXPORT std::string memory_picture(const Trace&, const Plan&, std::string_view title);

}  // namespace reprise
