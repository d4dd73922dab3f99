// Random traces of every kind, and budgets for them: what tests of planning try everything on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::testing {

enum class CaseKind {
  graph,             // as from a graph file
  step,              // a training step
  timeline,          // everything a trace can have but tiers
  tiers,             // the same with tiers of unlimited capacity
  limited_tiers,     // the same with tiers of limited capacity
  overlapping_tiers  // the same with a tier that takes time beside the computation, limited here and there
};
[[nodiscard]] const char* name(CaseKind kind);
[[nodiscard]] const std::vector<CaseKind>& all_kinds();

// Small enough for exhaustive search.
[[nodiscard]] Trace small_case(CaseKind kind, std::uint64_t seed);
// With this many moments; `step`: about.
[[nodiscard]] Trace random_case(CaseKind kind, std::uint64_t seed, int moments);

// This many, or many times more if the environment says REPRISE_LONG.
[[nodiscard]] std::uint64_t cases(std::uint64_t few);

[[nodiscard]] std::string read_aloud(const Plan& plan);

}  // namespace reprise::testing
