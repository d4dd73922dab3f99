// The online policy: what to forget when an allocation does not fit, without knowing what comes.
//
// Cheap to rebuild per byte, and saved long ago, which means needed late. Costs are those of everything that would have
// to be replayed. Called by the meter on the thread that allocates, whatever it is doing: it only frees.
#pragma once

#include "reprise/trace/trace.h"

namespace reprise::internal {

// Frees until the bytes fit, and returns true; throws BudgetError when nothing is left to free.
bool make_room(Bytes wanted);

}  // namespace reprise::internal
