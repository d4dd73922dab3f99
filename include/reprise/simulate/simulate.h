// The proof: one small interpreter that executes a plan on a trace and checks every action.
//
// Nothing else in Reprise computes a peak or a cost that is reported. A planner may keep its own books while it
// searches; what it returns is what this interpreter says about its plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// The rules a plan can break.
enum class Rule {
  known,         // every moment, value and tier that an action names exists
  run_once,      // each moment runs once, in order
  has_run,       // only a moment that has run can be replayed
  replayable,    // events and operators that may not be replayed are not
  resident,      // what an action needs is resident
  not_resident,  // get makes a value resident that is not
  in_tier,       // put and get keep to the values that the tier takes and has
  capacity,      // a tier never holds more than its capacity
  budget,        // live bytes never pass the budget
  complete,      // every moment has run when the plan ends
};
[[nodiscard]] const char* name(Rule);

struct BrokenRule {
  Rule rule = Rule::known;
  std::size_t action = 0;   // its index in the plan; the number of actions for `complete`
  std::optional<Id> value;  // the value concerned, if it is one
  std::string sentence;     // for people: the action, the value, the rule and the numbers
};

// A value where its bytes are counted, from its arrival until it goes: in plain memory, or as a copy in a tier.
struct Residence {
  // What brought it. A copy in a tier was put there.
  enum class Origin : std::uint8_t { outside, run, replay, get, put };
  Id value = 0;
  Origin origin = Origin::outside;
  Id tier = 0;                     // of a copy: a position in the plan's tiers
  std::size_t begin = 0, end = 0;  // its bytes are live while the actions from `begin` up to, not including, `end`
                                   // take place; one of no action is left out
  bool operator==(const Residence&) const = default;
};

struct Simulation {
  std::optional<BrokenRule> broken;  // none: the plan is valid, and everything below is its proof
  double cost = 0;                   // of all actions
  Bytes peak = 0;                    // largest of `live`
  std::size_t peak_action = 0;       // the first action that reaches it
  std::size_t replays = 0, puts = 0, gets = 0;
  double replay_cost = 0, tier_cost = 0;  // shares of `cost`: replays, and puts with gets
  std::vector<Bytes> tier_peaks;          // by tier: the most it held
  // Live bytes while action i takes place: workspace, other bytes and tiers that count in the budget included. Up to
  // the broken action if a rule is broken. Empty if not asked for.
  std::vector<Bytes> live;
  // Where every value was and how it came there, in the order in which residences end. Empty if not asked for.
  std::vector<Residence> residences;
  [[nodiscard]] bool valid() const { return !broken; }
};

struct SimulateOptions {
  bool record_live = true;         // fill `live`; costs one number for each action
  bool check_budget = true;        // false: find out what budget the plan needs instead of holding it to its own
  bool record_residences = false;  // fill `residences`; costs one record for each time a value is made or got
};

[[nodiscard]] Simulation simulate(const Trace&, const Plan&, const SimulateOptions& = {});

// The values that are resident while this action of a valid plan takes place, ascending.
[[nodiscard]] std::vector<Id> resident_at(const Trace&, const Plan&, std::size_t action);

}  // namespace reprise
