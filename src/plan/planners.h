// The planners behind `make_plan`, each in its own file.
//
// Each takes a checked trace and returns a plan that is valid but may need more than the budget (the caller asks the
// interpreter), or nothing if it finds none. Each throws BadOption for an option it needs and does not have, and for a
// trace it was not made for.
#pragma once

#include <optional>
#include <variant>

#include "reprise/plan/planner.h"

namespace reprise::internal {

// Returns the planner's own options; the defaults if it was chosen by its name.
template <class Own>
[[nodiscard]] Own own_options(const PlanOptions& options) {
  const Own* const given = std::get_if<Own>(&options.planner);
  return given ? *given : Own();
}

[[nodiscard]] std::optional<Plan> plan_segments(const Trace&, const PlanOptions&);     // segments.cpp
[[nodiscard]] std::optional<Plan> plan_every(const Trace&, const PlanOptions&);        // segments.cpp
[[nodiscard]] std::optional<Plan> plan_chen_sqrt(const Trace&, const PlanOptions&);    // chen.cpp
[[nodiscard]] std::optional<Plan> plan_chen_greedy(const Trace&, const PlanOptions&);  // chen.cpp
[[nodiscard]] std::optional<Plan> plan_revolve(const Trace&, const PlanOptions&);      // revolve_slots.cpp
[[nodiscard]] std::optional<Plan> plan_hrevolve(const Trace&, const PlanOptions&);     // hrevolve.cpp
[[nodiscard]] std::optional<Plan> plan_chain(const Trace&, const PlanOptions&);        // chain_planner.cpp

// Returns the plan with the unit that sizes were rounded to, and whether all of them were multiples of it already.
// Takes at most half of the time limit, unless `moves` are given. Exact, up to rounding, for up to 229 layers; longer
// chains, and shorter ones in little time, are cut into long parts at fewer places: see LongParts.
struct RoundedPlan {
  Plan plan;
  Bytes unit = 1;
  bool exact = false;
};
[[nodiscard]] std::optional<RoundedPlan> plan_chain_rounded(const Trace&, const PlanOptions&);

// Like plan_chain, for a trace of any shape, seen as a chain of single moments or of the stretches between places where
// one value crosses; nothing if that is a single stretch. A start for `best`: the effort is limited to `work` additions
// for fitting the budget and, if nothing does, as many again for the smallest peak. 1e9 take about 0.6 seconds.
[[nodiscard]] std::optional<Plan> plan_chain_seed(const Trace&, const PlanOptions&, double work = 1e9);

}  // namespace reprise::internal
