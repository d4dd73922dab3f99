#include "plan/chains/revolve_slots.h"

#include <algorithm>

#include "plan/planners.h"
#include "reprise/plan/revolve.h"

namespace reprise::internal {

int fewest_slots(int layers) {
  int slots = 1;
  while (revolve_steps(layers, slots) > most_steps) ++slots;
  return slots;
}

SlotPlan revolve_with_most_slots(const Trace& trace, const Timeline& timeline, const ChainShape& chain,
                                 const PlanOptions& options) {
  const int layers = static_cast<int>(chain.layers.size()), fewest = fewest_slots(layers);
  return plan_with_most_slots(trace, options, fewest, std::max(layers, fewest), [&](int slots) {
    return plan_of_steps(trace, timeline, chain, revolve_schedule(layers, slots), std::nullopt, options.budget);
  });
}

std::optional<Plan> plan_revolve(const Trace& trace, const PlanOptions& options) {
  const Timeline timeline(trace);
  const ChainShape chain = chain_of(trace, timeline, "revolve");
  const std::optional<int> slots = own_options<RevolvePlanner>(options).slots;
  if (!slots) return revolve_with_most_slots(trace, timeline, chain, options).plan;
  const ChainSteps steps = revolve_schedule(static_cast<int>(chain.layers.size()), *slots);
  return plan_of_steps(trace, timeline, chain, steps, std::nullopt, options.budget);
}

}  // namespace reprise::internal
