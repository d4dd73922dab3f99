// Tiers as people read them, by their own names. Those that count in the budget hold packed values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// Returns where a value is: "packed", "on disk", "on the host", "in 'tape'".
[[nodiscard]] std::string where(const Tier&);
// Return what is done with a value: "packing", "writing to disk", "copying to the host", "copying to 'tape'"; and the
// way back.
[[nodiscard]] std::string putting(const Tier&);
[[nodiscard]] std::string getting(const Tier&);
// Returns both: "packing and unpacking", "writing and reading", "copying there and back".
[[nodiscard]] std::string both_ways(const Tier&);

// What a plan does with one of its tiers.
struct TierUse {
  Id tier = 0;
  std::size_t puts = 0, gets = 0;
  Bytes peak = 0;  // of the bytes there
};
// Returns those tiers that the plan puts something into, in their order. The simulation is one of this plan.
[[nodiscard]] std::vector<TierUse> tiers_used(const Plan&, const Simulation&);

// Returns a line of a report for each of them: "  tier        'disk': 2 puts, 2 gets, at most 1.50 MiB there".
[[nodiscard]] std::string tier_lines(const Plan&, const Simulation&);

}  // namespace reprise::internal
