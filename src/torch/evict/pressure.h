// Pressure: an allocation does not fit. The online policy evicts victims (victims.h) until it does.
//
// Called by the meter on the thread that allocates, whatever it is doing: it only frees.
#pragma once

#include "torch/memory/meter.h"

namespace reprise::internal {

// Frees what is at the device of this meter until the bytes fit, and returns true; throws BudgetError when nothing is
// left to free.
bool make_room(Meter&, Bytes wanted);

}  // namespace reprise::internal
