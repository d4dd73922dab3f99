// The cheapest plan there is, by looking at all of them: for traces with few values only.
#pragma once

#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::testing {

// The cost of the cheapest valid plan of runs, replays and drops that fits the budget; none: no plan does. By
// Dijkstra's algorithm over (next moment, resident values), with the interpreter's rules written a second time. Needs
// (moments + 1)
// * 2^values numbers of memory, so no more than about 18 values.
[[nodiscard]] std::optional<double> shortest_plan(const Trace&, Bytes budget);

}  // namespace reprise::testing
