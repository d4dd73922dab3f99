// What a plan does to the values of a trace, and why: the rows of a report's tables.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

enum class Fate {
  kept,
  packed,
  outside,  // in a tier that does not count in the budget
  evicted,
};

enum class Reason {
  // of what is evicted, packed or outside
  frees_at_peak,  // it would be there where keeping everything has most bytes live, and is not
  frees_while_unused,
  // of what is kept
  from_outside,
  not_replayable,
  unneeded,  // not needed after it was made
  in_use,    // no moment between its uses, or the program itself holds it then
  needed_at_peak,
  not_worth_it,  // it could be evicted
};

// One value, or several that are alike: the same operator up to numbers in its name, the same bytes, fate, tier and
// reason.
struct ValueGroup {
  std::string name, module;  // "layer 0…23: softmax"; names are as in the trace, not escaped
  std::size_t values = 0;
  Bytes bytes = 0;       // of each
  double byte_cost = 0;  // of all: bytes times the cost that passes while they are resident, if everything is kept
  double byte_cost_after = 0;  // and with the plan; copies in tiers that count in the budget included
  Fate fate = Fate::kept;
  std::optional<Tier> tier;  // of what is packed or outside: its name, and what it is, without entries
  Reason reason = Reason::not_worth_it;
  std::size_t replays = 0, gets = 0;  // of all
  // Of all: replays, shared by bytes among the outputs they bring back, puts and gets. Of what is kept: replaying each
  // maker once.
  double recompute_cost = 0;
  Bytes freed_at_peak = 0;  // of all
};

// Values of one operator, or of one module, by name up to numbers in it.
struct NameGroup {
  std::string name;
  std::size_t values = 0;
  Bytes bytes = 0;  // of all values
  double byte_cost = 0, byte_cost_after = 0;
  std::size_t replays = 0;
  double replay_cost = 0;
};

struct Fates {
  std::vector<ValueGroup> values;                 // by descending `byte_cost`
  std::vector<NameGroup> by_operator, by_module;  // likewise; values from outside and without a module are left out
  double byte_cost = 0;                           // of all values
};

// `before` is the simulation of `everything`, which keeps everything; `after` that of the plan. Both with residences.
[[nodiscard]] Fates fates_of(const Trace&, const Plan& everything, const Simulation& before, const Plan&,
                             const Simulation& after);

// Returns the reason as a sentence, without a full stop: "recomputing costs 0.30 % of the step and frees 8.00 MiB at
// the peak".
[[nodiscard]] std::string sentence(const Trace&, const ValueGroup&);

// Returns what happens: "kept", "packed", "on disk", "on the host, and 1 replay", "evicted, 3 replays".
[[nodiscard]] std::string what_happens(const ValueGroup&);

}  // namespace reprise::internal
