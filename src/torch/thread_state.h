// What a thread with an open step carries along.
#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <optional>

#include "torch/recording.h"

namespace reprise::internal {

struct ThreadState {
  const SessionState* step = nullptr;     // whose step is open
  double step_start = 0;                  // on the clock of the thread
  std::shared_ptr<SessionState> session;  // the same, if the step is recorded
  std::shared_ptr<Recording> recording;   // none until the first operator of a period
  int inside = 0;                         // operators that are recorded, or ignored with all they call, and run now
  bool met_inside = false;                // it was met inside of an operator, which has perhaps not ended yet
  int forgetting = 0;                     // regions that forget what is saved in them
  Bytes forgotten = 0;                    // by them, ever
  std::optional<at::CallbackHandle> operators, nodes;  // callbacks that are there
};

[[nodiscard]] ThreadState& this_thread();

}  // namespace reprise::internal
