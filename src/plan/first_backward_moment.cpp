#include "plan/first_backward_moment.h"

#include "plan/drops.h"
#include "reprise/simulate/simulate.h"

namespace reprise::internal {

Id first_backward_moment(const Trace& trace, const Timeline& timeline) {
  for (Id m = 0; m < trace.moment_count(); ++m) {
    if (trace.is_event(m)) return m;
  }
  if (trace.moments.empty()) return 0;
  std::vector<Action> runs;
  runs.reserve(trace.moments.size());
  for (Id m = 0; m < trace.moment_count(); ++m) runs.push_back(Action::run(m));
  const Plan plan = with_drops(trace, timeline, {}, runs, 0);
  const Simulation simulation = simulate(trace, plan, {.record_live = false, .check_budget = false});
  const Action& peak = plan.actions[simulation.peak_action];
  return peak.kind == Action::Kind::run ? peak.target : 0;  // a drop only if nothing has any bytes
}

Id first_backward_moment(const Trace& trace) {
  return first_backward_moment(trace, Timeline(trace));
}

}  // namespace reprise::internal
