// The best plan of a small trace, found by looking at every plan there is.
//
// What is where between two actions (the moments that have run, the values that the plan has, the copies in tiers) is a
// state, and so is what is left of transfers beside the computation; the actions lead from state to state. A shortest
// path through all states is the cheapest plan, a path whose worst action is least bad the plan with the smallest peak.
// Every action is tried in every state. What an action does is written here a second time, from the essays in trace.h
// and plan.h, and shares nothing with the interpreter or the planners.
#pragma once

#include <optional>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::testing {

// Time and memory double with each value and each entry of a tier.
[[nodiscard]] bool small_enough_for_exhaustive_search(const Trace& trace, int values_and_entries = 14);

struct CheapestPlan {
  double cost = 0;
  Plan plan;
};
// Nothing if no plan fits the budget.
[[nodiscard]] std::optional<CheapestPlan> cheapest_plan(const Trace& trace, Bytes budget);

struct LowestPlan {
  Bytes peak = 0;
  Plan plan;  // its budget is its peak
};
[[nodiscard]] LowestPlan lowest_plan(const Trace& trace);

}  // namespace reprise::testing
