// Finds when a value is not needed.
#pragma once

#include <optional>
#include <vector>

#include "reprise/trace/timeline.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// Returns the cost of all moments before each, and of all at the end.
[[nodiscard]] std::vector<double> cost_before_moments(const Trace&);

struct Idle {
  Id from = 0, until = 0;  // moments, both included
  double cost = 0;         // of what runs in that stretch
};

// Returns the longest stretch between two uses of a value with a maker in which dropping it frees something: no moment
// of it needs the value, and the program does not hold it. Empty if no such stretch costs anything.
[[nodiscard]] std::optional<Idle> longest_idle(const Trace&, const Timeline&, const std::vector<double>& cost_before,
                                               Id value);

}  // namespace reprise::internal
