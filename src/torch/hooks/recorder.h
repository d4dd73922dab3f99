// The recorder: watches the dispatcher while a step is open, and records each operator as a call (operator_call.h) and
// each node of backward as an event.
#pragma once

namespace reprise::internal {

enum class Watch { off, on };

// Adds and removes the callbacks of this thread. Adding those that are there has no effect.
void watch_operators(Watch);
void watch_nodes(Watch);

}  // namespace reprise::internal
