// The trace builder: makes a trace of a pass that was recorded.
//
// The trace has one moment for each operator and each event; an event that needs bytes of its own while it runs is an
// operator that makes nothing and runs once. Values are those that can be recomputed; everything else is other bytes.
// Bytes are those of the first device of the session: values elsewhere take none, and are kept for nothing.
// Operators of a chain in place (in_place_chains.h) are one operator of the trace.
#pragma once

#include <string>
#include <vector>

#include "reprise/trace/trace.h"
#include "torch/offload/tier_costs.h"
#include "torch/plans/recorded_pass.h"

namespace reprise::internal {

// A trace, and where its values and operators are in the pass.
struct PassTrace {
  Trace trace;
  std::vector<Id> recorded;                // by value of the trace: the recorded value
  std::vector<Id> released;                // by value of the trace: the last moment at which the program held it
  std::vector<std::vector<Id>> operators;  // by operator of the trace: recipes to run, in order
  std::string below;                       // name of the tier below the device; empty: none

  static constexpr const char* packed = "packed";  // name of the tier of packed values
};

// Returns the trace of a pass, with these tiers offered. Throws BadInput if something happened in the pass that a trace
// cannot say.
[[nodiscard]] PassTrace build_trace(const RecordedPass&, const OfferedTiers&);

}  // namespace reprise::internal
