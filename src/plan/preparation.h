// What planning makes when it is first used, made beforehand.
#pragma once

#include "reprise/export.h"

namespace reprise::internal {

// Loads the solver, and makes the tables that planning needs. What is made first is destroyed last: whoever plans on a
// thread that the end of the process has to end calls this before that end is announced to it. In the child of a fork
// it matters, too, that no thread was about to make one.
//
// Exported for the LibTorch side, which is a library of its own.
REPRISE_EXPORT void prepare_planning();

}  // namespace reprise::internal
