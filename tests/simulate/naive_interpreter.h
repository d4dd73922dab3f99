// A second interpreter, to hold the first one against. It keeps no books at all: whether a value is resident, held or
// in a tier before an action is worked out from the list of actions, every time anew, by the definitions in trace.h and
// plan.h. Slow, and that is the point: it shares neither code nor ideas with src/simulate.
#pragma once

#include "reprise/simulate/simulate.h"

namespace reprise::testing {

[[nodiscard]] Simulation naive_simulate(const Trace& trace, const Plan& plan, bool check_budget);

}  // namespace reprise::testing
