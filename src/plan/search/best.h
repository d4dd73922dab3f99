// The anytime planner: everything else as a start, then search, with bounds that may prove it is done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/search/effort.h"
#include "plan/search/problem.h"

namespace reprise::internal {

struct BestPlan {
  std::optional<Plan> plan;     // the cheapest that fits
  double lower_bound = 0;       // no plan for this budget costs less
  std::optional<Plan> closest;  // if none fits: the plan with the smallest peak that was met
  std::vector<std::string> notes;
};

[[nodiscard]] BestPlan plan_best(const Problem&, const PlanOptions&, Effort&);

// Returns a timetable as a plan, and the other way round; nothing if the plan uses a tier in a way the search cannot.
[[nodiscard]] Plan to_plan(const Problem&, const std::vector<Id>& nodes);
[[nodiscard]] std::optional<std::vector<Id>> to_nodes(const Problem&, const Plan&);

}  // namespace reprise::internal
