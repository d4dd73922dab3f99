// Writes results as text for a terminal: a few lines on what was found, what it is worth and what to do next.
//
// Text is only a view: every number in it is a field of the result, and names from files are made harmless to a
// terminal. All texts end with a line break.
#pragma once

#include <string>

#include "reprise/export.h"
#include "reprise/plan/planner.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Describes what a planner found: the overhead and how far it can be from the best possible, or the smallest budget
// that works and what keeps it from going lower.
[[nodiscard]] REPRISE_EXPORT std::string to_text(const Trace&, const PlanResult&);

// Describes what the interpreter found about a plan. The live bytes are drawn as a line if the simulation has them.
[[nodiscard]] REPRISE_EXPORT std::string to_text(const Trace&, const Plan&, const Simulation&);

}  // namespace reprise
