// Steps: what opening and closing one does on its thread.
#pragma once

#include <memory>

#include "torch/session/session_state.h"

namespace reprise::internal {

// Opens a step on this thread, which has none, and closes it.
void open_step(const std::shared_ptr<SessionState>&);
void close_step(SessionState&) noexcept;

// Closes steps of threads that are not there, and begins the time of this thread at zero. In the child of a fork, under
// the lock.
void keep_step_of_this_thread();

}  // namespace reprise::internal
