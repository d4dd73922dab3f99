#include "reprise/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "plan/bounds/bound.h"
#include "plan/drops.h"
#include "plan/early_transfers.h"
#include "plan/planners.h"
#include "plan/search/best.h"
#include "plan/search/best_overlapping.h"
#include "plan/search/online_scores.h"
#include "plan/search/search.h"
#include "plan/search/smallest_budget.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

using PlanFunction = std::optional<Plan> (*)(const Trace&, const PlanOptions&);

struct Planner {
  PlannerInfo info;
  PlanFunction make;  // nullptr: `best`
};

template <OnlineScore::Kind kind>
std::optional<Plan> plan_online(const Trace& trace, const PlanOptions& options) {
  const Timeline timeline(trace);
  const Problem problem(trace, timeline, options.budget);
  OnlineLimits limits;
  limits.cost_ratio = 100;
  const auto nodes = simulate_online(problem, first_uses(problem), {kind}, limits);
  if (!nodes) return std::nullopt;
  return to_plan(problem, *nodes);
}

std::optional<Plan> plan_keep_everything(const Trace& trace, const PlanOptions&) {
  return keep_everything(trace);
}

const std::vector<Planner>& table() {
  using Kind = OnlineScore::Kind;
  static const std::vector<Planner> planners = {
      {{"best", "anytime search from all the others, with a proven bound; the one to use"}, nullptr},
      {{"keep-everything", "evict nothing"}, plan_keep_everything},
      {{"segments", "equal segments of operators (--segments K): keep what crosses, replay the rest"}, plan_segments},
      {{"every", "a kept boundary every N operators (--every N)"}, plan_every},
      {{"chen-sqrt", "as many segments as the square root of the number of operators"}, plan_chen_sqrt},
      {{"chen-greedy", "segments of about equal bytes, the size found by trying"}, plan_chen_greedy},
      {{"revolve", "binomial checkpointing of a chain (--slots S)"}, plan_revolve},
      {{"h-revolve", "binomial checkpointing of a chain on memory and a disk tier"}, plan_hrevolve},
      {{"chain", "dynamic programme for chains with different sizes and costs"}, plan_chain},
      {{"h-dtr", "online heuristic: cost with missing relatives over size and staleness"}, plan_online<Kind::dtr>},
      {{"h-local", "online heuristic: cost over size and staleness"}, plan_online<Kind::local>},
      {{"h-msps", "online heuristic: cost with missing ancestors over size"}, plan_online<Kind::msps>},
      {{"lru", "online heuristic: evict what was used longest ago"}, plan_online<Kind::lru>},
      {{"largest", "online heuristic: evict the largest"}, plan_online<Kind::largest>},
  };
  return planners;
}

// "h_DTR" and "dtr" are the same planner.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) plain += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain.starts_with("h-") && plain != "h-revolve" ? plain.substr(2) : plain;
}

std::string name_of(const PlannerChoice& choice) {
  struct Names {
    std::string operator()(const std::string& name) const { return name; }
    std::string operator()(const SegmentsPlanner&) const { return "segments"; }
    std::string operator()(const EveryPlanner&) const { return "every"; }
    std::string operator()(const RevolvePlanner&) const { return "revolve"; }
    std::string operator()(const HRevolvePlanner&) const { return "h-revolve"; }
  };
  return std::visit(Names(), choice);
}

const Planner& find_planner(const PlannerChoice& choice) {
  const std::string name = name_of(choice);
  std::string known;
  for (const Planner& planner : table()) {
    if (plain_name(planner.info.name) == plain_name(name)) return planner;
    known += (known.empty() ? "" : ", ") + std::string(planner.info.name);
  }
  throw BadOption(fmt::format("[plan] planner is '{}', but there is no such planner; there are: {}", name, known));
}

constexpr SimulateOptions peak_only{.record_live = false, .check_budget = false};

// Returns what is live at the peak of the smallest plan found, or at the moment that sets the floor.
Blocker blocker_of(const Trace& trace, const Blocker& floor, const Plan& smallest) {
  const Simulation simulation = simulate(trace, smallest, peak_only);
  if (simulation.peak <= floor.bytes) return floor;
  Blocker blocker;
  blocker.bytes = simulation.peak;
  for (std::size_t i = 0; i <= simulation.peak_action; ++i) {
    if (smallest.actions[i].kind == Action::Kind::run) blocker.moment = smallest.actions[i].target;
  }
  if (smallest.actions[simulation.peak_action].kind != Action::Kind::run) {
    blocker.moment = std::min(blocker.moment + 1, trace.moment_count() - 1);  // what is replayed for it
  }
  blocker.values = resident_at(trace, smallest, simulation.peak_action);
  std::stable_sort(blocker.values.begin(), blocker.values.end(),
                   [&](Id a, Id b) { return trace.values[a].bytes > trace.values[b].bytes; });
  return blocker;
}

class MakePlan {
 public:
  MakePlan(const Trace& trace, const PlanOptions& options)
      : trace_(trace),
        options_(options),
        planner_(find_planner(options.planner)),
        effort_(options),
        timeline_(trace),
        problem_(trace, timeline_, options.budget) {
    const Plan keep = keep_everything(trace);
    floor_ = floor_of(trace);
    result_.planner = planner_.info.name;
    result_.budget = options.budget;
    result_.keep_everything_peak = simulate(trace, keep, peak_only).peak;
    result_.floor = floor_.bytes;
    result_.plain_cost = result_.lower_bound = trace.total_cost();
    effort_.reserve(effort_.seconds());  // proving the plan takes about as long as all this did
  }

  PlanResult run() {
    if (options_.budget < floor_.bytes) {
      find_smallest_feasible(lowest_known(trace_, options_));
    } else if (planner_.make) {
      use_plan(planner_.make(trace_, options_));
    } else {
      search();
    }
    result_.seconds = effort_.seconds();
    result_.moves = effort_.moves();
    result_.cancelled = effort_.cancelled();
    return std::move(result_);
  }

 private:
  void search() {
    BestPlan best = any_overlaps(trace_.tiers) ? plan_best_overlapping(problem_, options_, effort_)
                                               : plan_best(problem_, options_, effort_);
    result_.notes = std::move(best.notes);
    result_.lower_bound = std::max(result_.lower_bound, best.lower_bound);
    if (best.plan) accept(std::move(*best.plan));
    take_start_if_better();
    if (!result_.has_plan()) find_smallest_feasible(std::move(*best.closest));
  }

  // What the search cannot use (it keeps the room of a limited tier for other values) may still be good.
  void take_start_if_better() {
    if (!options_.start || to_nodes(problem_, *options_.start)) return;
    Plan start = *options_.start;
    start.budget = options_.budget;
    start.tiers = trace_.tiers;
    const Simulation simulation = simulate(trace_, start, {.record_live = false});
    if (!simulation.valid() || (result_.has_plan() && result_.simulation.cost <= simulation.cost)) return;
    accept(std::move(start));
  }

  // Takes the plan of a simple planner as it is.
  void use_plan(std::optional<Plan> plan) {
    if (plan) plan->budget = options_.budget;
    const bool fits = plan && simulate(trace_, *plan, peak_only).peak <= options_.budget;
    if (fits) {
      find_bound();
      return accept(std::move(*plan));
    }
    result_.notes.push_back(plan ? "this planner's plan needs more than the budget"
                                 : "this planner finds no plan for this budget");
    if (plan) return set_infeasible(*plan);
    find_smallest_feasible(lowest_known(trace_, options_));
  }

  void find_bound() {
    const Problem bounded(trace_, timeline_, options_.budget, Problem::LimitedTiers::serve_all, 0);
    const auto uses = first_uses(bounded);
    result_.lower_bound = std::max(result_.lower_bound, quick_bound(bounded, uses));
    if (!options_.bounds || !solver_available()) {
      result_.notes.push_back(options_.bounds ? solver_problem() + ": the bound is weaker"
                                              : "lower bounds by linear programming are switched off");
      return;
    }
    const BoundProgram program(bounded, uses, {});
    if (program.nonzeros() > largest_program_within(options_.bounds_memory)) return;
    SolveOptions solving;
    solving.seconds = effort_.seconds_until(1);
    solving.stop = [this] { return effort_.cancelled(); };
    if (const auto bound = program.solve(solving).cost) result_.lower_bound = std::max(result_.lower_bound, *bound);
  }

  void accept(Plan plan) {
    result_.plan = std::move(plan);
    result_.simulation = simulate(trace_, result_.plan);
    if (!result_.simulation.valid()) {
      throw Error("[plan] the planner made a plan that the interpreter refuses, which is a defect of Reprise: " +
                  result_.simulation.broken->sentence);
    }
    const bool proven = result_.simulation.cost <= result_.lower_bound * (1 + proof_tolerance);
    result_.lower_bound = std::min(result_.lower_bound, result_.simulation.cost);
    result_.status = proven ? PlanStatus::optimal : PlanStatus::feasible;
  }

  // Without a plan: finds the smallest budget that works. This search may find a plan for the budget after all.
  void find_smallest_feasible(Plan closest) {
    Plan smallest = find_smallest(trace_, timeline_, options_, effort_, 1, floor_.bytes, std::move(closest));
    if (smallest.budget <= options_.budget && planner_.make) {
      result_.notes.push_back("the planner 'best' finds a plan for this budget");
    }
    if (smallest.budget > options_.budget || planner_.make) return set_infeasible(smallest);
    smallest.budget = options_.budget;
    accept(std::move(smallest));
  }
  void set_infeasible(const Plan& smallest) {
    result_.status = PlanStatus::infeasible;
    result_.smallest_feasible = simulate(trace_, smallest, peak_only).peak;
    result_.blocker = options_.budget < floor_.bytes ? floor_ : blocker_of(trace_, floor_, smallest);
  }

  const Trace& trace_;
  const PlanOptions& options_;
  const Planner& planner_;
  Effort effort_;
  const Timeline timeline_;
  const Problem problem_;
  Blocker floor_;
  PlanResult result_;
};

}  // namespace

const char* name(PlanStatus status) {
  switch (status) {
    case PlanStatus::optimal: return "optimal";
    case PlanStatus::feasible: return "feasible";
    case PlanStatus::infeasible: return "infeasible";
  }
  return "unknown";
}

double PlanResult::cost_ratio() const {
  return plain_cost > 0 ? simulation.cost / plain_cost : 1;
}
double PlanResult::lower_bound_ratio() const {
  return plain_cost > 0 ? lower_bound / plain_cost : 1;
}
double PlanResult::gap() const {
  return lower_bound > 0 ? (simulation.cost - lower_bound) / lower_bound : 0;
}

PlanResult make_plan(const Trace& trace, const PlanOptions& options) {
  return MakePlan(trace, options).run();
}

const std::vector<PlannerInfo>& planners() {
  static const std::vector<PlannerInfo> list = [] {
    std::vector<PlannerInfo> infos;
    for (const Planner& planner : table()) infos.push_back(planner.info);
    return infos;
  }();
  return list;
}

Plan keep_everything(const Trace& trace) {
  std::vector<Action> actions;
  for (Id m = 0; m < trace.moment_count(); ++m) actions.push_back(Action::run(m));
  Plan plan = with_drops(trace, Timeline(trace), {}, actions, 0);
  plan.budget = simulate(trace, plan, peak_only).peak;
  return plan;
}

}  // namespace reprise
