// The bridge: from what was seen in a period to a trace, and from a plan of that trace to a script.
//
// The trace has one moment for each operator and each event; an event that needs bytes of its own while it runs is an
// operator that makes nothing and runs once. Values are those that can be rebuilt; everything else is other bytes.
// Bytes are those of the first place of the session: values elsewhere take none, and are kept for nothing.
// Operators of a chain in place (in_place_chains.h) are one operator of the trace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reprise/plan/planner.h"
#include "torch/offload/tiers.h"
#include "torch/plans/in_place_chains.h"
#include "torch/plans/period.h"

namespace reprise::internal {

class Bridge {
 public:
  // With these tiers offered.
  Bridge(const Period&, const OfferedTiers&);

  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] std::shared_ptr<const Script> script(const Plan&, const Simulation&, double gap) const;

 private:
  [[nodiscard]] Script::Replay replay_of(Id op) const;
  void add_values(const Period&);
  void add_operators(const Period&);
  void add_moments(const Period&);
  void run_event(Moment&, Bytes workspace);
  void add_takeovers(const Period&);
  void add_packing(const Period&);
  void add_tier(const Period&, const TierTerms&);

  const InPlaceChains chains_;
  Trace trace_;
  std::string name_of_below_;                     // of the tier below the place; empty: none
  std::vector<Id> value_of_;                      // by recorded value: in the trace, or -1
  std::vector<Id> recorded_;                      // by value of the trace
  std::vector<std::vector<Id>> operators_;        // by operator of the trace: recipes to run, in order
  std::vector<std::uint64_t> events_;             // by moment
  std::vector<OtherBytes> other_;                 // by moment
  std::vector<std::optional<PackedForm>> forms_;  // by recorded value
  std::vector<Id> released_;                      // by recorded value: the last moment at which the program held it
};

}  // namespace reprise::internal
