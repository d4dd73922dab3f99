// From a schedule for a chain of layers to a plan for the trace that the chain was seen in.
#pragma once

#include <functional>
#include <optional>

#include "plan/chains/chain_shape.h"
#include "reprise/plan/chain_steps.h"
#include "reprise/plan/planner.h"

namespace reprise::internal {

// Returns the plan that takes these steps. The first forward step of a layer runs its moments, later ones replay what
// is needed of them; a tape whose values are there already costs nothing. Level 1 is the tier of this position in the
// trace; a state that the tier does not take stays in memory. The plan is valid whatever the steps are, if every
// layer's forward comes once before its backward.
[[nodiscard]] Plan plan_of_steps(const Trace&, const Timeline&, const ChainShape&, const ChainSteps&,
                                 std::optional<Id> tier, Bytes budget);

struct SlotPlan {
  Plan plan;
  int slots = 0;
  Bytes peak = 0;
};

// Of the plans for low..high slots the one with most slots that fits the budget, found by bisection; if none fits, the
// one with the smallest peak that was tried. At least one is tried, whatever the options say about stopping early.
[[nodiscard]] SlotPlan plan_with_most_slots(const Trace&, const PlanOptions&, int low, int high,
                                            const std::function<Plan(int)>& plan_with);

}  // namespace reprise::internal
