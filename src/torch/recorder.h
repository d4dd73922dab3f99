// The recorder: watches the dispatcher while a step is open, and writes recipes or follows those of an earlier period.
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <memory>

#include "torch/thread_state.h"

namespace reprise::internal {

// Adds and removes the callbacks of this thread. Adding those that are there has no effect.
void watch_operators(bool);
void watch_nodes(bool);

// A new period begins on this thread, if the present one is over; both without effect outside a step.
void begin_period_if_over();
void end_period();

}  // namespace reprise::internal
