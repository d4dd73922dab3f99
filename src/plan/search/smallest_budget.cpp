#include "plan/search/smallest_budget.h"

#include <algorithm>
#include <cmath>

#include "plan/search/best.h"
#include "plan/search/online_scores.h"
#include "plan/search/search.h"
#include "reprise/plan/smallest.h"

namespace reprise::internal {
namespace {

constexpr double first_step = 0.25, largest_step = 0.4, smallest_step = 0.004;  // of the way to the floor
constexpr int tries = 12;  // at most this share of the effort, 1 / tries, goes into one budget

class Descent {
 public:
  Descent(const Trace& trace, const Timeline& timeline, const PlanOptions& options, Effort& effort, double until_share)
      : trace_(trace), timeline_(timeline), options_(options), effort_(effort), until_(until_share) {
    slice_ = (until_share - effort.spent()) / tries;
  }

  // Returns a plan for this budget, found by the heuristics or from the nodes of a plan for a larger one.
  std::optional<Plan> try_budget(Bytes budget, const Plan& from) {
    const Problem problem(trace_, timeline_, budget);
    Search search(problem, options_.seed + ++searches_, effort_);
    search.lower_bound = std::numeric_limits<double>::infinity();  // any plan will do
    offer_heuristics(problem, search);
    const auto start = to_nodes(problem, from);
    for (const double heat : {0.3, 1.0, 3.0}) {
      if (search.has_best() || !start || spent()) break;
      const double unit = search.unit_of(*start);
      search.penalty(20 * unit);
      search.anneal(*start, std::min(until_, effort_.spent() + slice_), heat * unit, 0.1 * heat * unit,
                    Search::Until::fits);
    }
    if (!search.has_best()) return std::nullopt;
    return to_plan(problem, search.best());
  }

  [[nodiscard]] bool spent() const { return effort_.spent() >= until_; }

 private:
  void offer_heuristics(const Problem& problem, Search& search) {
    const auto uses = first_uses(problem);
    OnlineLimits limits;
    limits.cost_ratio = 20;
    const double until = effort_.spent() + slice_;
    limits.stop = [&] { return effort_.cancelled() || (effort_.reads_clock() && effort_.spent() > until); };
    for (const OnlineScore& score : oracle_scores()) {
      if (search.has_best() || spent() || limits.stop()) return;
      effort_.count_moves(1);
      if (const auto nodes = simulate_online(problem, uses, score, limits)) search.offer(*nodes);
    }
  }

  const Trace& trace_;
  const Timeline& timeline_;
  const PlanOptions& options_;
  Effort& effort_;
  double until_, slice_;
  std::uint64_t searches_ = 0;
};

}  // namespace

Plan find_smallest(const Trace& trace, const Timeline& timeline, const PlanOptions& options, Effort& effort,
                   double until_share, Bytes floor, Plan plan) {
  const SimulateOptions peak_only{.record_live = false, .check_budget = false};
  Descent descent(trace, timeline, options, effort, until_share);
  Bytes budget = simulate(trace, plan, peak_only).peak;
  double step = first_step;
  while (budget > floor && !descent.spent()) {
    const auto down = static_cast<Bytes>(std::ceil(step * static_cast<double>(budget - floor)));
    const bool nearly_there = budget - down - floor < floor / 200;
    if (auto found = descent.try_budget(nearly_there ? floor : budget - down, plan)) {
      plan = std::move(*found);
      budget = simulate(trace, plan, peak_only).peak;
      step = std::min(largest_step, step * 1.3);
    } else {
      step /= 2;
      if (step < smallest_step) break;
    }
  }
  plan.budget = budget;
  return plan;
}

Plan lowest_known(const Trace& trace, const PlanOptions& options) {
  Plan everything = keep_everything(trace);
  if (!options.start) return everything;
  Plan start = *options.start;
  start.tiers = trace.tiers;
  const Simulation simulation = simulate(trace, start, {.record_live = false, .check_budget = false});
  start.budget = simulation.peak;
  return simulation.valid() && start.budget < everything.budget ? start : everything;
}

}  // namespace reprise::internal

namespace reprise {
using namespace internal;

Plan smallest_plan(const Trace& trace, const PlanOptions& options) {
  Effort effort(options);
  return find_smallest(trace, Timeline(trace), options, effort, 1, floor_of(trace).bytes, lowest_known(trace, options));
}

}  // namespace reprise
