// Pressure: an allocation does not fit. The online policy forgets victims (victims.h) until it does.
//
// Called by the meter on the thread that allocates, whatever it is doing: it only frees.
#pragma once

#include "reprise/trace/trace.h"

namespace reprise::internal {

// Frees until the bytes fit, and returns true; throws BudgetError when nothing is left to free.
bool make_room(Bytes wanted);

}  // namespace reprise::internal
