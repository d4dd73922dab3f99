// Planners choose what to evict, pack and recompute so that a trace fits a budget.
//
// Every planner is a function from a trace and options to a result of the same shape: a plan, the interpreter's
// simulation of it, and how far it can be from the best possible. `best` uses all the others as starting points.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reprise/export.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// The progress of a planner while it works.
struct PlanProgress {
  double seconds = 0;
  std::uint64_t moves = 0;
  std::optional<double> cost_ratio;   // of the best plan so far
  std::optional<double> lower_bound;  // of the cost, as a ratio
  double share_done = 0;              // of the time or the moves, 0 to 1
};

// Planners with options of their own.

// Cuts the operators into segments: what crosses from one to the next is kept, the rest replayed.
struct SegmentsPlanner {
  std::optional<int> count = {};     // equal segments
  std::vector<Stretch> ranges = {};  // or these: inclusive ranges of operators
};
// Keeps the input of every `operators`-th operator.
struct EveryPlanner {
  int operators = 4;
};
// Plans a chain by binomial checkpointing.
struct RevolvePlanner {
  std::optional<int> slots = {};  // states that are remembered, the first included; empty: as many as the budget allows
};
// Plans a chain on memory and a disk tier.
struct HRevolvePlanner {
  std::optional<int> slots = {};  // the same, in memory
};

// A planner: one of those, or the name of one of `planners()`.
using PlannerChoice = std::variant<std::string, SegmentsPlanner, EveryPlanner, RevolvePlanner, HRevolvePlanner>;

struct PlanOptions {
  // The most bytes that may be live. A budget that no plan fits gives an infeasible result, not an error.
  Bytes budget = 0;

  // `best` is the one to use; the others are simple, known, and quick.
  PlannerChoice planner = "best";

  // The time after which `best` stops; it stops earlier if it can prove that nothing better exists. More time: cheaper
  // plans and tighter bounds.
  std::chrono::duration<double> time_limit = std::chrono::seconds(5);

  // The number of moves that `best` makes; steps of the solver on an integer program count as moves. If set, it reads
  // no clock: the same trace, options and seed give the same plan.
  std::optional<std::uint64_t> moves = {};
  std::uint64_t seed = 1;

  // A plan for this trace, or for one that differs only in numbers (bytes, costs, other bytes). `best` also searches
  // from it, and the result is never worse. A plan that needs more than the budget is a place to search from as well. A
  // plan that makes no sense for this trace is ignored. Other planners ignore this option.
  std::optional<Plan> start = {};

  // Computes lower bounds by linear and integer programming. Off, or without HiGHS: bounds are weaker, and `notes` says
  // so.
  bool bounds = true;

  // About the most bytes that one of these programs may take, a sixteenth where it only makes the bound tighter. Larger
  // ones are not solved, and `notes` says so: the gap is wider, and the plan may cost more. Empty: up to 1.5 million
  // coefficients, each some 500 bytes.
  std::optional<Bytes> bounds_memory = {};

  // Called from time to time from the planning thread.
  std::function<void(const PlanProgress&)> progress = {};

  // Planning ends soon and returns the best plan so far when any thread sets this to true.
  const std::atomic<bool>* cancel = nullptr;
};

enum class PlanStatus {
  optimal,     // no plan of this trace and budget costs less
  feasible,    // a valid plan; `gap` says how far from optimal it can be
  infeasible,  // no plan found, see `smallest_feasible` and `blocker`
};
[[nodiscard]] REPRISE_EXPORT const char* name(PlanStatus);

// The moment that keeps the budget from going lower, and the values that have to be resident then.
struct Blocker {
  Id moment = 0;
  Bytes bytes = 0;         // live then
  std::vector<Id> values;  // largest first
  bool proven = false;     // true if no plan can do with less at this moment
};

struct REPRISE_EXPORT PlanResult {
  PlanStatus status = PlanStatus::infeasible;
  std::string planner;
  Plan plan;              // empty if infeasible
  Simulation simulation;  // of the plan: its proof
  Bytes budget = 0;

  Bytes keep_everything_peak = 0;          // of running every moment once and dropping each value after its last use
  Bytes floor = 0;                         // no plan has a smaller peak
  double plain_cost = 0;                   // of running every moment once
  double lower_bound = 0;                  // no plan for this budget costs less; at least `plain_cost`
  std::optional<Bytes> smallest_feasible;  // if infeasible: the smallest budget for which a plan was found
  std::optional<Blocker> blocker;          // if infeasible

  double seconds = 0;
  std::uint64_t moves = 0;
  bool cancelled = false;
  std::vector<std::string> notes;  // sentences about what was not available or not tried

  [[nodiscard]] bool has_plan() const { return status != PlanStatus::infeasible; }
  [[nodiscard]] double cost_ratio() const;         // cost over `plain_cost`; 1 for a trace that costs nothing
  [[nodiscard]] double lower_bound_ratio() const;  // lower bound over `plain_cost`
  [[nodiscard]] double gap() const;                // (cost - lower bound) / lower bound
};

// Makes a plan. Throws BadOption for an unknown planner, for an option that it cannot use, and for a trace that it
// cannot plan (`revolve` on a trace that is not a chain).
[[nodiscard]] REPRISE_EXPORT PlanResult make_plan(const Trace&, const PlanOptions&);

struct PlannerInfo {
  std::string_view name;
  std::string_view summary;  // one line
};
[[nodiscard]] REPRISE_EXPORT const std::vector<PlannerInfo>& planners();

// Returns the plan that evicts nothing: it runs every moment once and drops each value right after its last use, at
// once if it has none. Budgets are compared with its peak.
[[nodiscard]] REPRISE_EXPORT Plan keep_everything(const Trace&);

// Returns the floor, which no plan's peak can go below: the moment that needs most by itself, and the values it needs.
[[nodiscard]] REPRISE_EXPORT Blocker floor_of(const Trace&);

}  // namespace reprise
