// The bridge: from what was seen in a pass to a trace, and from a plan of that trace to a executable.
//
// The trace has one moment for each operator and each event; an event that needs bytes of its own while it runs is an
// operator that makes nothing and runs once. Values are those that can be recomputed; everything else is other bytes.
// Bytes are those of the first device of the session: values elsewhere take none, and are kept for nothing.
// Operators of a chain in place (in_place_chains.h) are one operator of the trace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reprise/plan/planner.h"
#include "torch/offload/tier_costs.h"
#include "torch/plans/in_place_chains.h"
#include "torch/plans/recorded_pass.h"

namespace reprise::internal {

class Bridge {
 public:
  // With these tiers offered.
  Bridge(const RecordedPass&, const OfferedTiers&);

  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] std::shared_ptr<const ExecutablePlan> executable(const Plan&, const Simulation&, double gap) const;

 private:
  [[nodiscard]] ExecutablePlan::Replay replay_of(Id op) const;
  void add_values(const RecordedPass&);
  void add_operators(const RecordedPass&);
  void add_moments(const RecordedPass&);
  void run_event(Moment&, Bytes workspace);
  void add_takeovers(const RecordedPass&);
  void add_packing(const RecordedPass&);
  void add_tier(const RecordedPass&, const TierCosts&);

  const InPlaceChains chains_;
  Trace trace_;
  std::string name_of_below_;                     // of the tier below the device; empty: none
  std::vector<Id> value_of_;                      // by recorded value: in the trace, or -1
  std::vector<Id> recorded_;                      // by value of the trace
  std::vector<std::vector<Id>> operators_;        // by operator of the trace: recipes to run, in order
  std::vector<std::uint64_t> events_;             // by moment
  std::vector<OtherBytes> other_;                 // by moment
  std::vector<std::optional<PackedForm>> forms_;  // by recorded value
  std::vector<Id> released_;                      // by recorded value: the last moment at which the program held it
};

}  // namespace reprise::internal
