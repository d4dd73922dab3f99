#include "report/idle.h"

#include <algorithm>

namespace reprise::internal {

std::vector<double> cost_before_moments(const Trace& trace) {
  std::vector<double> cost_before(trace.moments.size() + 1, 0);
  for (Id m = 0; m < trace.moment_count(); ++m) cost_before[m + 1] = cost_before[m] + trace.cost(m);
  return cost_before;
}

std::optional<Idle> longest_idle(const Trace& trace, const Timeline& timeline, const std::vector<double>& cost_before,
                                 Id value) {
  Idle longest;
  Id before = timeline.made_at(value);
  for (const Id need : timeline.needed_at(value)) {
    Id from = before + 1;
    // While it is held, dropping it frees nothing.
    if (const auto& held = trace.values[value].held; held && held->first <= from) {
      from = std::max(from, held->last + 1);
    }
    const double cost = from < need ? cost_before[need] - cost_before[from] : 0;
    if (cost > longest.cost) longest = {from, need - 1, cost};
    before = need;
  }
  if (longest.cost <= 0) return std::nullopt;
  return longest;
}

}  // namespace reprise::internal
