// What planning makes when it is first used, made beforehand.
#pragma once

#include "reprise/export.h"

namespace reprise::internal {

// Loads the solver, and makes the tables that planning needs. What is made first is destroyed last: a caller that plans
// on a thread of its own, which exit handlers stop, calls this before it registers them. It also ensures that no thread
// is making a table at a fork.
//
// Exported for the LibTorch side, which is a library of its own.
REPRISE_EXPORT void prepare_planning();

}  // namespace reprise::internal
