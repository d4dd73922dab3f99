// Planners: what to forget, pack and replay so that a trace fits a budget.
//
// Every planner is a function from a trace and options to a result of the same shape: a plan, what the interpreter
// says about it, and how far it can be from the best possible. `best` uses all the others as starting points.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// What a planner tells about its work while it goes on.
struct PlanProgress {
  double seconds = 0;
  std::uint64_t moves = 0;
  std::optional<double> cost_ratio;   // of the best plan so far
  std::optional<double> lower_bound;  // as a ratio too
  double share_done = 0;              // of the time or the moves, 0 to 1
};

struct PlanOptions {
  // Live bytes never pass it. A budget that no plan fits gives an infeasible result, not an error.
  Bytes budget = 0;

  // One of `planners()`. `best` is the one to use; the others are simple, known, and quick.
  std::string planner = "best";

  // For `segments`: how many. For `every`: how many operators share one kept input. For `revolve`, and for `h-revolve`
  // as the slots in memory: how many states are remembered, the first included; none: as many as the budget allows.
  // Other planners ignore them.
  std::optional<int> segments = {};
  std::optional<int> every = {};
  std::optional<int> slots = {};
  // For `segments` instead of a number: inclusive ranges of operators.
  std::vector<Stretch> ranges = {};

  // `best` stops after this time, or earlier if it can prove that nothing better exists. More time: cheaper plans and
  // tighter bounds.
  std::chrono::duration<double> time_limit = std::chrono::seconds(5);

  // If set, `best` makes this many moves and reads no clock: the same trace, options and seed give the same plan.
  std::optional<std::uint64_t> moves = {};
  std::uint64_t seed = 1;

  // A plan for this trace, or one that differs only in numbers (bytes, costs, other bytes): `best` searches from it
  // too, and the result is never worse. One that needs more than the budget is a place to search from as well; one
  // that makes no sense for this trace is ignored, and so is every start by the other planners.
  std::optional<Plan> start = {};

  // Lower bounds by linear and integer programming. Off, or without HiGHS: weaker bounds, said in `notes`.
  bool bounds = true;

  // Called now and then from the planning thread.
  std::function<void(const PlanProgress&)> progress = {};

  // Set to true from any thread: planning ends soon and returns the best so far.
  const std::atomic<bool>* cancel = nullptr;
};

enum class PlanStatus {
  optimal,     // no plan of this trace and budget costs less
  feasible,    // a valid plan; `gap` says how far from optimal it can be
  infeasible,  // no plan found, see `smallest_feasible` and `blocker`
};
[[nodiscard]] const char* name(PlanStatus);

// What keeps the budget from going lower: the moment, and the values that have to be there.
struct Blocker {
  Id moment = 0;
  Bytes bytes = 0;         // live then
  std::vector<Id> values;  // largest first
  bool proven = false;     // no plan whatsoever can do with less at this moment
};

struct PlanResult {
  PlanStatus status = PlanStatus::infeasible;
  std::string planner;
  Plan plan;              // empty if infeasible
  Simulation simulation;  // of the plan: its proof
  Bytes budget = 0;

  Bytes keep_everything_peak = 0;          // of running every moment once and dropping each value after its last use
  Bytes floor = 0;                         // no plan whatsoever has a smaller peak
  double plain_cost = 0;                   // of running every moment once
  double lower_bound = 0;                  // no plan for this budget costs less; at least `plain_cost`
  std::optional<Bytes> smallest_feasible;  // if infeasible: the smallest budget for which a plan was found
  std::optional<Blocker> blocker;          // if infeasible

  double seconds = 0;
  std::uint64_t moves = 0;
  bool cancelled = false;
  std::vector<std::string> notes;  // sentences: what was not available, what was given up

  [[nodiscard]] bool has_plan() const { return status != PlanStatus::infeasible; }
  [[nodiscard]] double cost_ratio() const;         // cost over `plain_cost`; 1 for a trace that costs nothing
  [[nodiscard]] double lower_bound_ratio() const;  // likewise
  [[nodiscard]] double gap() const;                // (cost - lower bound) / lower bound
};

// Throws BadOption for an unknown planner or an option it cannot use, and for a trace it cannot plan (`revolve` on a
// trace that is no chain).
[[nodiscard]] PlanResult make_plan(const Trace&, const PlanOptions&);

struct PlannerInfo {
  std::string_view name;
  std::string_view summary;  // one line
};
[[nodiscard]] const std::vector<PlannerInfo>& planners();

// The plan that forgets nothing: every moment once, each value dropped right after its last use, at once if it has
// none. Its peak is what budgets are compared with.
[[nodiscard]] Plan keep_everything(const Trace&);

// No plan has a smaller peak: the moment that needs most by itself, and what it needs.
[[nodiscard]] Blocker floor_of(const Trace&);

}  // namespace reprise
