// Session::run, however the functions are called and the process is copied.
#pragma once

#include <functional>

#include "torch/api/copy_of_process.h"
#include "torch/session/session_state.h"

namespace reprise::internal {

// `step` is a step of the session in which `train` runs. If it ends with a BudgetError, `train` is rehearsed, and if
// what the step has changed can be put back, that is done, and it runs again under the plan.
void run_step(SessionState&, const std::function<void()>& step, const std::function<void()>& train, const MakeCopy&);

}  // namespace reprise::internal
