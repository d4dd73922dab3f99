// A rehearsal: a step that does not fit without a plan is run without its memory, in a copy of the process
// (measurement.h in include/), and planned there. The next step follows these plans from its first operator on, though
// the process itself has not seen it yet: values and operators have the same numbers here and there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "torch/api/copy_of_process.h"
#include "torch/session/session_state.h"

namespace reprise::internal {

struct Rehearsal {
  std::vector<AnnouncedPlan> plans;  // for the passes of the step that it came to, each of which has one
  SmallestBudget smallest;           // if one of them has no plan: then there are none
  double planning_seconds = 0;
  std::string stopped_by;  // an error of the function, after at least one pass; empty: it ran to its end

  [[nodiscard]] bool has_plans() const { return !plans.empty(); }
};

// Throws MeasurementError if nothing of the function can be run without memory. Not in a step.
[[nodiscard]] Rehearsal rehearse(SessionState&, const std::function<void()>& train, const MakeCopy&);

}  // namespace reprise::internal
