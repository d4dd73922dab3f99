// A schedule chooses which states a chain remembers, and when it replays (recomputes) those that it evicted.
//
//   chain.schedule(schedule::every(8));
//   chain.schedule(schedule::slots(20));
//   chain.schedule(schedule::budget(64 << 20));
//
// A schedule makes a plan for the trace of the chain, and the interpreter checks it like every other plan. If the
// number of layers is not known before the last one has run, a schedule decides while forward goes on, and the plan has
// what was done and what will be done. A schedule of the caller's is a class derived from Schedule.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/export.h"
#include "reprise/plan/chain_steps.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"

namespace reprise {

// Decides while forward goes on. One object for each pass.
class REPRISE_EXPORT ChainDecisions {
 public:
  virtual ~ChainDecisions() = default;
  struct Decision {
    bool remember = false;    // true: remember the state just reached
    std::optional<Id> evict;  // a remembered state to evict first
  };
  // Decides after forward of the next layer is done, at this cost. State 0 is remembered from the start.
  [[nodiscard]] virtual Decision reached(double cost) = 0;
  // Returns the steps of backward after forward is over, from nothing but the remembered states. reverse_from, in
  // plan/revolve.h, makes the shortest ones.
  [[nodiscard]] virtual ChainSteps backward_steps() = 0;
  // Returns the same steps, one after the other, so that they need not be in memory at once. Called when backward
  // begins, and again when the plan is asked for. A class need not have its own; reverse_source makes one.
  [[nodiscard]] virtual std::unique_ptr<ChainStepSource> backward_source();
};

// How planning that takes a while is observed and ended.
struct ChainPlanning {
  // Called from time to time from the thread that plans, with the share of the time that is spent, 0 to 1.
  std::function<void(double share_done)> progress = {};
  // Planning ends soon, with the best plan so far, when any thread sets this to true.
  const std::atomic<bool>* cancel = nullptr;
  // True: the first plan that is found will do, because a pass waits for it and a better one is made afterwards. All of
  // the time is taken only if no plan is found before.
  bool at_once = false;
};

class REPRISE_EXPORT Schedule {
 public:
  virtual ~Schedule() = default;
  // Returns a plan for chain_trace(form), which the caller checks. Throws BadOption if there is none. A schedule that
  // decides while forward goes on need not have one.
  [[nodiscard]] virtual Plan plan(const ChainForm&) const;
  // Returns the same plan, and can be observed and ended, for a schedule that takes a while.
  [[nodiscard]] virtual Plan watched_plan(const ChainForm& form, const ChainPlanning&) const { return plan(form); }
  // Returns the steps of a schedule that follow from the number of layers alone, one after the other. A chain of more
  // than 10 000 layers takes them as they come, and the plan is never in memory, unless the schedule needs a disk or
  // sizes; plan() is called for all others. Null: the schedule has only plans.
  [[nodiscard]] virtual std::unique_ptr<ChainStepSource> steps(Id layers) const {
    (void)layers;
    return nullptr;
  }
  // Returns the decisions of a schedule that decides while forward goes on. Null for all others, which have a plan.
  [[nodiscard]] virtual std::unique_ptr<ChainDecisions> decisions() const { return nullptr; }
  // True if the sizes and costs of the form matter, so that they have to be known. A pass whose states, tapes or
  // gradients turn out larger is measured and planned again.
  [[nodiscard]] virtual bool needs_sizes() const { return false; }
  // Returns the bytes that a pass never has more of. Empty: no limit but that of the plan, if the schedule needs sizes.
  [[nodiscard]] virtual std::optional<Bytes> limit() const { return std::nullopt; }
  // True if the plan uses a disk.
  [[nodiscard]] virtual bool needs_disk() const { return false; }
  // Returns the schedule with its numbers, as it is written in a program: "every(4, 64)".
  [[nodiscard]] virtual std::string text() const { return "a schedule of the caller's"; }

  // Answer, before anything has run, which states are remembered when forward is over and backward begins: the state
  // after a layer, and the state before it. The state before layer k is the state after layer k-1; the state before
  // layer 0 is the input, and the state after the last layer is the result, which is the caller's and not remembered.
  // Throw BadOption for a layer that is not there, and for a number of layers if the sizes matter: then the form is
  // needed, such as AnyChain::sizes().
  [[nodiscard]] bool remembers(Id layers, Id position) const;
  [[nodiscard]] bool remembers(const ChainForm&, Id position) const;
  [[nodiscard]] bool remembers_before(Id layers, Id position) const;
  [[nodiscard]] bool remembers_before(const ChainForm&, Id position) const;
};
using SchedulePointer = std::shared_ptr<const Schedule>;

namespace schedule {

// Remembers every state until backward has used it; nothing is replayed.
[[nodiscard]] REPRISE_EXPORT SchedulePointer everything();

// Remembers the state before every n-th layer, from the first one on, and all states after the last of these, which
// backward needs first. Backward replays the n layers between two of them once and remembers the states between them
// meanwhile. If there would be more than `maximum` n-th layers, they are further apart: ceil(layers / maximum) layers.
// Throws BadOption unless both are positive.
[[nodiscard]] REPRISE_EXPORT SchedulePointer every(int n = 4, std::optional<int> maximum = 64);

// Remembers this many states, the first one included, with the fewest replays that are possible (Revolve). The state
// that a layer goes on from and the one it makes come on top. Throws BadOption unless positive.
[[nodiscard]] REPRISE_EXPORT SchedulePointer slots(int slots);

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
[[nodiscard]] REPRISE_EXPORT SchedulePointer memory_and_disk(const TwoLevels&);

// Keeps all states, tapes and gradients within this many bytes, and with them what a codec and a disk need for states
// on their way: see plan_chain_within. Needs the sizes, which need not be right: when something is larger than the plan
// was made for, the pass is measured and planned again from its input. If no plan fits, the error names what was
// larger. What the chain holds never passes the limit.
[[nodiscard]] REPRISE_EXPORT SchedulePointer budget(Bytes bytes,
                                                    std::chrono::duration<double> time_limit = std::chrono::seconds(5));

// Uses a number of slots, the first state included, for a number of layers that is known only when forward ends.
[[nodiscard]] REPRISE_EXPORT SchedulePointer online(int slots);

// Remembers a state if replaying it from the one remembered before would cost at least this much: the costs of the
// layers since then are added up. Costs are those given to ChainLoop::forward, or else the form's: 1 for each layer,
// and after Chain::measure seconds, so that a threshold is in seconds then.
[[nodiscard]] REPRISE_EXPORT SchedulePointer selective(double threshold = 100);

// Remembers the state after every layer whose own cost is at least this much, and the input. Costs as above.
[[nodiscard]] REPRISE_EXPORT SchedulePointer costly_layers(double threshold = 100);

// Remembers the states after these layers, by position and in any order, and the input. Throws BadOption for a negative
// one; plan() for one that is not there.
[[nodiscard]] REPRISE_EXPORT SchedulePointer after(std::vector<Id> positions);

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
// input state of a layer and its tape separately, and is exact for sizes rounded up to at most 500 parts of the budget
// and up to 229 layers; longer chains are cut into long parts at fewer places, and sizes are rounded to 250 parts. The
// `best` planner starts from its result. The time limit counts from the call; if `moves` is given, `best` stops after
// that many moves, and no clock is read. A plan that uses tiers leaves the bytes of the form's transit free, so that
// its own budget is smaller. Throws BadOption with the smallest feasible budget if nothing fits.
[[nodiscard]] REPRISE_EXPORT ChainBudgetPlan plan_chain_within(const ChainForm&, Bytes budget,
                                                               std::chrono::duration<double> time_limit,
                                                               std::optional<std::uint64_t> moves = std::nullopt,
                                                               const ChainPlanning& = {});

// Returns the plan that takes these steps on a chain: level 0 is plain memory, or the form's packed tier if it has one;
// level 1 is its disk. Takes time linear in the number of steps. The steps are not checked here; the interpreter finds
// steps that make no sense.
[[nodiscard]] REPRISE_EXPORT Plan plan_of_steps(const ChainForm&, const ChainSteps&, Bytes budget = largest_bytes);

}  // namespace reprise
