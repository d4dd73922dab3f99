// Results to report on, made by hand so that every number is known.
#pragma once

#include <utility>
#include <vector>

#include "reprise/plan/curve.h"

namespace reprise::testing {

// Points at the given budgets with the given overheads and, halfway between none and that, lower bounds; everything is
// kept at the last one. Plans and knee are left to the test.
inline Curve hand_made_curve(const std::vector<std::pair<Bytes, double>>& points) {
  Curve curve;
  curve.smallest = points.front().first;
  curve.floor = points.front().first / 2;
  curve.keep_everything_peak = points.back().first;
  curve.plain_cost = 100;
  for (const auto& [budget, overhead] : points) {
    PlanResult result;
    result.status = PlanStatus::feasible;
    result.planner = "best";
    result.budget = budget;
    result.keep_everything_peak = curve.keep_everything_peak;
    result.floor = curve.floor;
    result.plain_cost = 100;
    result.lower_bound = 100 * (1 + overhead / 2);
    result.simulation.cost = 100 * (1 + overhead);
    result.simulation.peak = budget;
    result.simulation.replays = static_cast<std::size_t>(overhead * 100);
    if (overhead == 0) result.status = PlanStatus::optimal;
    curve.points.push_back({budget, std::move(result)});
  }
  return curve;
}

}  // namespace reprise::testing
