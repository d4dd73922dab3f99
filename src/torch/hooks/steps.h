// Steps: what opening and closing one does on its thread.
#pragma once

#include <memory>

#include "torch/session/session_state.h"

namespace reprise::internal {

// This thread has no open step. Not under the arbiter's lock.
void open_step(const std::shared_ptr<SessionState>&);
void close_step(SessionState&) noexcept;

// In the child of a fork, under the lock: steps of threads that are not there are not open, and the time of this thread
// begins at zero.
void keep_step_of_this_thread();

}  // namespace reprise::internal
