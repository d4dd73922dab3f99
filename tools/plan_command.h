// What `plan` and `report` share.
#pragma once

#include <string>

#include "reprise/plan/planner.h"

namespace reprise::tools {

// With a progress bar, and Ctrl-C stops it.
[[nodiscard]] PlanResult plan_with_progress(const Trace&, PlanOptions options);

// The value of --budget, for this trace. Throws UsageError if it is none.
[[nodiscard]] Bytes parse_budget_option(const std::string& text, const Trace&);

}  // namespace reprise::tools
