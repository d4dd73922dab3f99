#include "reprise/plan/smallest.h"

#include "plan/search/smallest_budget.h"

namespace reprise {
using namespace internal;

Plan smallest_plan(const Trace& trace, const PlanOptions& options) {
  Effort effort(options);
  return find_smallest(trace, Timeline(trace), options, effort, 1, floor_of(trace).bytes, lowest_known(trace, options));
}

}  // namespace reprise
