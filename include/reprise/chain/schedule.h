// Schedules: what a chain remembers, and when it replays what it forgot.
//
//   chain.schedule(schedule::every(8));
//   chain.schedule(schedule::slots(20));
//   chain.schedule(schedule::budget(64 << 20));
//
// A schedule makes a plan for the trace that a chain is, and the interpreter checks it like every other plan. Where the
// number of layers is not known before the last one has run, a schedule decides as it goes, and the plan is what it did
// and what it is going to do. A schedule of the caller's is a class derived from Schedule.
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
    bool remember = false;      // the state just reached
    std::optional<Id> give_up;  // a state that was remembered, before this one is
  };
  // Forward of the next layer is done, at this cost. State 0 is remembered from the start.
  [[nodiscard]] virtual Decision reached(double cost) = 0;
  // Forward is over: the steps of backward, from nothing but the states that are remembered.
  [[nodiscard]] virtual ChainSteps backward_steps() = 0;
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  // A plan for chain_trace(form). It is checked by whoever asks. Throws BadOption if there is none.
  [[nodiscard]] virtual Plan plan(const ChainForm&) const = 0;
  // For a schedule that decides as it goes, and whose plan is never asked for; otherwise nullptr.
  [[nodiscard]] virtual std::unique_ptr<ChainDecisions> decisions() const { return nullptr; }
  // Whether the sizes and costs of the form matter, so that they have to be known and to be kept.
  [[nodiscard]] virtual bool needs_sizes() const { return false; }
  // Whether the plan uses a disk.
  [[nodiscard]] virtual bool needs_disk() const { return false; }
};
using SchedulePointer = std::shared_ptr<const Schedule>;

namespace schedule {

// Every state until backward has used it; nothing is replayed.
[[nodiscard]] SchedulePointer everything();

// The state before every n-th layer, from the first one on. Backward replays the n layers between two of them once and
// remembers the states between them meanwhile. With a maximum, states are further apart if there would be more of them:
// ceil(layers / maximum) layers. Throws BadOption unless both are positive.
[[nodiscard]] SchedulePointer every(int n = 4, std::optional<int> maximum = 64);

// This many states, the first one included: the fewest replays that are possible (Revolve). Throws BadOption unless
// positive.
[[nodiscard]] SchedulePointer slots(int slots);

// Slots in memory and slots on disk, with what it costs to write and to read a state there, in the unit of the forward
// cost (H-Revolve). Costs in memory are nothing.
struct TwoLevels {
  int memory_slots = 1;
  int disk_slots = 0;
  double write_cost = 1;
  double read_cost = 1;
  double forward_cost = 1;
  double backward_cost = 1;
};
[[nodiscard]] SchedulePointer memory_and_disk(const TwoLevels&);

// All states, tapes and gradients within this many bytes: see plan_chain_within. Needs the sizes.
[[nodiscard]] SchedulePointer budget(Bytes bytes, std::chrono::duration<double> time_limit = std::chrono::seconds(5));

// A number of slots, the first state included, for a number of layers that only the end of forward will tell.
[[nodiscard]] SchedulePointer online(int slots);

// A state is remembered if rebuilding it from the one remembered before would cost at least this much. Costs are those
// that are told to Chain::forward, else the form's.
[[nodiscard]] SchedulePointer selective(double threshold = 100);

}  // namespace schedule

// What `schedule::budget` finds.
struct ChainBudgetPlan {
  Plan plan;
  Simulation simulation;      // its proof
  double plain_cost = 0;      // of every layer once, forward and backward
  double lower_bound = 0;     // no plan for this budget costs less
  Bytes unit = 1;             // the chain programme rounded sizes up to multiples of this
  bool exact = false;         // all sizes were such multiples already
  bool by_programme = false;  // the plan is the programme's; otherwise `best` found a cheaper one
};

// The cheapest plan that is found for this budget: the better of the chain programme, in which the input state of a
// layer and its tape can be remembered separately and which is exact for sizes rounded up to at most 500 parts of the
// budget, and of the `best` planner, which starts from it and stops after the time limit, or, if
// they are given, after so many moves and without a clock. Throws BadOption with the
// smallest budget that is feasible if nothing fits.
[[nodiscard]] ChainBudgetPlan plan_chain_within(const ChainForm&, Bytes budget,
                                                std::chrono::duration<double> time_limit,
                                                std::optional<std::uint64_t> moves = std::nullopt);

// The plan that takes these steps on a chain: level 0 is plain memory, or the form's packed tier if it has one; level 1
// is its disk. Linear in the number of steps. The steps have to make sense: the interpreter tells if they do not.
[[nodiscard]] Plan plan_of_steps(const ChainForm&, const ChainSteps&, Bytes budget = largest_bytes);

}  // namespace reprise
