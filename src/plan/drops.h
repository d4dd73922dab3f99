// Where to drop: planners decide what to run, replay, put and get, and in which order; the drops follow from that.
#pragma once

#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/timeline.h"

namespace reprise::internal {

// Returns the plan that takes these actions (none of them a drop) and drops every value right after its last use before
// it is made again, at once if it has none. For a given list this is the smallest memory at every action, so no planner
// needs to search for drops. The interpreter decides whether the list is a valid plan.
[[nodiscard]] Plan with_drops(const Trace&, const Timeline&, std::vector<Tier> tiers,
                              const std::vector<Action>& actions, Bytes budget);

}  // namespace reprise::internal
