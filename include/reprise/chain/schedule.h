// A schedule chooses what a chain remembers, and when it replays (recomputes) what it forgot.
//
//   chain.schedule(schedule::every(8));
//   chain.schedule(schedule::slots(20));
//   chain.schedule(schedule::budget(64 << 20));
//
// A schedule makes a plan for the trace of the chain, and the interpreter checks it like every other plan. If the
// number of layers is not known before the last one has run, a schedule decides as it goes, and the plan contains what
// it has done and what it will do. A schedule of the caller's is a class derived from Schedule.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/plan/chain_steps.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"

namespace reprise {

// Decides while forward goes on. One object for each pass.
class ChainDecisions {
 public:
  virtual ~ChainDecisions() = default;
  struct Decision {
    bool remember = false;      // true: remember the state just reached
    std::optional<Id> give_up;  // a remembered state to forget first
  };
  // Decides after forward of the next layer is done, at this cost. State 0 is remembered from the start.
  [[nodiscard]] virtual Decision reached(double cost) = 0;
  // Returns the steps of backward after forward is over, from nothing but the remembered states.
  [[nodiscard]] virtual ChainSteps backward_steps() = 0;
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  // Returns a plan for chain_trace(form), which the caller checks. Throws BadOption if there is none.
  [[nodiscard]] virtual Plan plan(const ChainForm&) const = 0;
  // Returns the decisions of a schedule that decides as it goes; its plan() is never called. Null for all others.
  [[nodiscard]] virtual std::unique_ptr<ChainDecisions> decisions() const { return nullptr; }
  // True if the sizes and costs of the form matter, so that they have to be known and must not be exceeded.
  [[nodiscard]] virtual bool needs_sizes() const { return false; }
  // True if the plan uses a disk.
  [[nodiscard]] virtual bool needs_disk() const { return false; }
};
using SchedulePointer = std::shared_ptr<const Schedule>;

namespace schedule {

// Remembers every state until backward has used it; nothing is replayed.
[[nodiscard]] SchedulePointer everything();

// Remembers the state before every n-th layer, from the first one on. Backward replays the n layers between two of them
// once and remembers the states between them meanwhile. If that would be more than `maximum` states, they are further
// apart: ceil(layers / maximum) layers. Throws BadOption unless both are positive.
[[nodiscard]] SchedulePointer every(int n = 4, std::optional<int> maximum = 64);

// Remembers this many states, the first one included, with the fewest replays that are possible (Revolve). Throws
// BadOption unless positive.
[[nodiscard]] SchedulePointer slots(int slots);

// Slots in memory and slots on disk, with the costs of writing and reading a state there, in the unit of the forward
// cost (H-Revolve). Slots in memory cost nothing to write and read.
struct TwoLevels {
  int memory_slots = 1;
  int disk_slots = 0;
  double write_cost = 1;
  double read_cost = 1;
  double forward_cost = 1;
  double backward_cost = 1;
};
[[nodiscard]] SchedulePointer memory_and_disk(const TwoLevels&);

// Keeps all states, tapes and gradients within this many bytes: see plan_chain_within. Needs the sizes.
[[nodiscard]] SchedulePointer budget(Bytes bytes, std::chrono::duration<double> time_limit = std::chrono::seconds(5));

// Uses a number of slots, the first state included, for a number of layers that is known only when forward ends.
[[nodiscard]] SchedulePointer online(int slots);

// Remembers a state if rebuilding it from the one remembered before would cost at least this much. Costs are those
// given to Chain::forward, or else the form's.
[[nodiscard]] SchedulePointer selective(double threshold = 100);

}  // namespace schedule

// The result behind `schedule::budget`.
struct ChainBudgetPlan {
  Plan plan;
  Simulation simulation;      // its proof
  double plain_cost = 0;      // of every layer once, forward and backward
  double lower_bound = 0;     // no plan for this budget costs less
  Bytes unit = 1;             // the chain programme rounded sizes up to multiples of this
  bool exact = false;         // true if all sizes were such multiples already
  bool by_programme = false;  // true if the plan is the programme's; otherwise `best` found a cheaper one
};

// Returns the cheapest plan that is found for this budget, the better one of two. The chain programme can remember the
// input state of a layer and its tape separately, and is exact for sizes rounded up to at most 500 parts of the budget.
// The `best` planner starts from its result and stops after the time limit, or, if `moves` is given, after so many
// moves and without a clock. Throws BadOption with the smallest feasible budget if nothing fits.
[[nodiscard]] ChainBudgetPlan plan_chain_within(const ChainForm&, Bytes budget,
                                                std::chrono::duration<double> time_limit,
                                                std::optional<std::uint64_t> moves = std::nullopt);

// Returns the plan that takes these steps on a chain: level 0 is plain memory, or the form's packed tier if it has one;
// level 1 is its disk. Takes time linear in the number of steps. The steps are not checked here; the interpreter finds
// steps that make no sense.
[[nodiscard]] Plan plan_of_steps(const ChainForm&, const ChainSteps&, Bytes budget = largest_bytes);

}  // namespace reprise
