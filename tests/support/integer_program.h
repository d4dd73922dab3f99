// The cheapest plan of a graph-like trace by an integer program of its own: Checkmate's (Jain et al. 2020).
//
// Stage t ends with the run of moment t; R says what is run or replayed in a stage, S what is kept from one stage to
// the next, and within a stage operators come in the order of the trace, each at most once. That is less than a plan
// can do (a plan may replay an operator twice between two runs, and in any order), so its optimum is never below the
// true one.
#pragma once

#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::testing {

struct StagedOptimum {
  bool solved = false;         // to the end, in the time given
  std::optional<double> cost;  // nothing: no such plan fits
};

// For traces as from a graph file: operators with one output each, in the order of their values, and nothing else.
// Needs HiGHS.
[[nodiscard]] StagedOptimum staged_optimum(const Trace& trace, Bytes budget, double seconds);

}  // namespace reprise::testing
