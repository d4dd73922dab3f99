// Revolve's schedules as plans for a chain in a trace.
#pragma once

#include <cstdint>

#include "plan/chains/chain_plan.h"

namespace reprise::internal {

// Longer schedules are of no use.
inline constexpr std::int64_t most_steps = 20'000'000;

// Returns the fewest slots that are tried when their number is free: fewer would make a schedule too long to be of use.
[[nodiscard]] int fewest_slots(int layers);

// As many slots as the budget allows.
[[nodiscard]] SlotPlan revolve_with_most_slots(const Trace&, const Timeline&, const ChainShape&, const PlanOptions&);

}  // namespace reprise::internal
