// Writes results for programs: one JSON object on one line, without a line break at the end.
//
// Keys ending in _bytes are whole numbers of bytes, keys ending in _ratio are costs divided by the cost of running
// everything once, `seconds` are seconds. A key whose value does not exist (the cost of a plan that was not found) is
// present and null. Keys may be added in later versions.
#pragma once

#include <string>

#include "reprise/export.h"
#include "reprise/plan/curve.h"
#include "reprise/plan/fit.h"
#include "reprise/plan/planner.h"
#include "reprise/report/inspection.h"
#include "reprise/simulate/simulate.h"

namespace reprise {

// Keys: status ("optimal", "feasible", "infeasible"), planner, name, cost, cost_ratio, overhead (cost_ratio - 1),
// peak_bytes, budget_bytes, keep_everything_peak_bytes, floor_bytes, plain_cost, lower_bound, lower_bound_ratio, gap,
// replays, puts, gets, actions, moves, seconds, cancelled, notes (a list of sentences), and
//   if infeasible: smallest_feasible_bytes, blocker {moment, name, bytes, proven, values: [{value, bytes, maker},
//   ...]}; cost, cost_ratio, overhead, peak_bytes, gap, replays, puts, gets and actions are null then.
[[nodiscard]] REPRISE_EXPORT std::string json_line(const Trace&, const PlanResult&);

// Keys: valid, name, cost, cost_ratio, overhead, peak_bytes, peak_action, budget_bytes, keep_everything_peak_bytes,
// replays, puts, gets, replay_cost, tier_cost, tier_peak_bytes (by name of the tier), actions, and
//   if invalid: broken {rule, action, value, sentence}; cost, cost_ratio, overhead, peak_bytes and peak_action are null
//   then.
[[nodiscard]] REPRISE_EXPORT std::string json_line(const Trace&, const Plan&, const Simulation&);

// Keys: name, points [{budget_bytes, share, and of the keys of a plan's result: status to gets, seconds}, ...] by
// ascending budget, knee (a position in `points`, or null), knee_bytes, smallest_feasible_bytes, floor_bytes,
// keep_everything_peak_bytes, plain_cost, advice, seconds, cancelled. Points that were not planned because planning was
// cancelled are left out.
[[nodiscard]] REPRISE_EXPORT std::string json_line(const Trace&, const Curve&);

// Keys: budget_bytes, recorded (the sizes), points [{size, recorded, status, keep_everything_peak_bytes, floor_bytes,
// plain_cost, plain_cost_per_sample, and, null if infeasible: cost, cost_per_sample, overhead, peak_bytes, replays,
// puts, gets; smallest_feasible_bytes, null if feasible}, ...] by ascending size, largest and cheapest (sizes, or null
// if none fits), reached_the_end, advice, seconds, cancelled.
[[nodiscard]] REPRISE_EXPORT std::string json_line(const Fit&);

// Keys: name, operators, moments, events, values, outside_values, value_bytes, outside_bytes, largest_other_bytes,
// keep_everything_peak_bytes, floor_bytes, floor {as a blocker above, and its parts: needed_bytes, made_bytes,
// workspace_bytes, held_bytes, fixed_bytes, other_bytes}, cost, event_cost, tiers [{name, in_budget, values}], peak
// {moment, name, bytes, other_bytes, workspace_bytes, values}, worth_most [{value, bytes, maker, from_moment,
// until_moment, unused_cost, recompute_cost, replays, at_peak}, ...], fixed {count, bytes, values}. Lists of values
// have the ten largest.
[[nodiscard]] REPRISE_EXPORT std::string json_line(const Trace&, const Inspection&);

}  // namespace reprise
