// Pressure: an allocation does not fit. The online policy evicts victims (victims.h) until it does. Where there are
// none, one step after the other frees what is harder to do without.
//
// Called by the meter on the thread that allocates, whatever it is doing: it only frees.
#pragma once

#include <string_view>
#include <vector>

#include "torch/memory/meter.h"

namespace reprise::internal {

// Frees what is at the device of this meter until the bytes fit, and returns true; false if they fit into the reserve.
// Throws BudgetError when nothing is left to free.
bool make_room(Meter&, Bytes wanted);

// Returns the names of what is tried when bytes are missing: each step only where all before it have nothing to free,
// and then from the first one again.
[[nodiscard]] std::vector<std::string_view> steps_of_pressure();

}  // namespace reprise::internal
