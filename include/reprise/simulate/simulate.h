// One small interpreter executes a plan on a trace and checks every action. Its result is the proof of the plan.
//
// Nothing else in Reprise computes a peak or a cost that is reported. A planner may keep its own books while it
// searches; the numbers it returns are those of this interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// The rules that a plan can break.
enum class Rule {
  known,         // every moment, value and tier that an action names exists
  run_once,      // each moment runs once, in order
  has_run,       // only a moment that has run can be replayed
  replayable,    // only operators that may be replayed are replayed, and no events
  resident,      // the values that an action needs are resident
  not_resident,  // get is for a value that is not resident
  in_tier,       // put and get use only values that the tier takes and has
  capacity,      // a tier never holds more than its capacity
  budget,        // live bytes never pass the budget
  complete,      // every moment has run when the plan ends
};
[[nodiscard]] REPRISE_EXPORT const char* name(Rule);

struct BrokenRule {
  Rule rule = Rule::known;
  std::size_t action = 0;   // its index in the plan; the number of actions for `complete`
  std::optional<Id> value;  // the value concerned, if there is one
  std::string sentence;     // for people: the action, the value, the rule and the numbers
};

// A stay of a value where its bytes are counted, from its arrival until it goes: in plain memory, or as a copy in a
// tier.
struct Residence {
  // How the value arrived. A copy in a tier was put there.
  enum class Origin : std::uint8_t { outside, run, replay, get, put };
  Id value = 0;
  Origin origin = Origin::outside;
  Id tier = 0;                     // of a copy: a position in the plan's tiers
  std::size_t begin = 0, end = 0;  // its bytes are live while the actions from `begin` up to, not including, `end`
                                   // take place; stays of no action are left out
  bool operator==(const Residence&) const = default;
};

// A put or get, when its tier does it; while the computation does, if the tier does nothing beside it.
struct Transfer {
  std::size_t action = 0;
  double begin = 0, end = 0;
  bool operator==(const Transfer&) const = default;
};

struct Simulation {
  std::optional<BrokenRule> broken;  // empty: the plan is valid, and everything below is its proof
  double cost = 0;                   // the time at which the computation has done all actions, by the rules of trace.h
  Bytes peak = 0;                    // the largest of `live`, drops left out
  std::size_t peak_action = 0;       // the first action that reaches it
  std::size_t replays = 0, puts = 0, gets = 0;
  double replay_cost = 0, tier_cost = 0;  // shares of `cost`: replays, and puts with gets
  double waited = 0;                      // another one: what the computation has waited for tiers
  std::vector<Bytes> tier_peaks;          // by tier: the most it held
  // The live bytes while action i takes place: workspace, other bytes and tiers that count in the budget included. Ends
  // before the broken action if a rule is broken. Empty if not asked for.
  std::vector<Bytes> live;
  // The places where every value was, in the order in which the stays end. Empty if not asked for.
  std::vector<Residence> residences;
  // The time at which the computation comes to action i, and one number more: the end of the last action. An action
  // that waits begins with that. Empty if not asked for.
  std::vector<double> times;
  // All puts and gets, in the order of the plan. Empty if not asked for.
  std::vector<Transfer> transfers;
  [[nodiscard]] bool valid() const { return !broken; }
};

struct SimulateOptions {
  bool record_live = true;         // fills `live`; costs one number for each action
  bool check_budget = true;        // false: finds the budget that the plan needs, instead of holding it to its own
  bool record_residences = false;  // fills `residences`; costs one record for each time a value is made or got
  bool record_times = false;       // fills `times` and `transfers`
};

// Executes the plan on the trace, up to the first action that breaks a rule.
[[nodiscard]] REPRISE_EXPORT Simulation simulate(const Trace&, const Plan&, const SimulateOptions& = {});

// Returns the values that are resident while this action of a valid plan takes place, ascending.
[[nodiscard]] REPRISE_EXPORT std::vector<Id> resident_at(const Trace&, const Plan&, std::size_t action);

}  // namespace reprise
