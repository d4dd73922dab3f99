// The cheapest way through a chain within a byte budget.
#include <fmt/format.h>

#include "chain/growing_limits.h"
#include "plan/planners.h"
#include "reprise/chain/schedule.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

[[noreturn]] void fail(Bytes budget, const PlanResult& result) {
  std::string smallest = "no plan was found for any budget";
  if (result.smallest_feasible)
    smallest = fmt::format("the smallest for which a plan was found is {}", *result.smallest_feasible);
  throw BadOption(fmt::format("[chain] budget is {} bytes: no plan fits, {} (nothing needs less than {})", budget,
                              smallest, result.floor));
}

// Returns the plan by which every state goes to this level and comes back once: the one that needs least memory, and
// often the only one that fits.
Plan all_in_place(const ChainForm& form, Id level, Bytes budget) {
  using Kind = ChainStep::Kind;
  ChainSteps steps;
  for (Id k = 1; k <= form.size(); ++k) {
    steps.push_back({Kind::store, k - 1, level});
    steps.push_back({Kind::advance, k});
  }
  for (Id k = form.size(); k > 0; --k) {
    steps.push_back({Kind::load, k - 1, level});
    steps.push_back({Kind::tape, k});
    steps.push_back({Kind::backward, k});
    steps.push_back({Kind::discard, k - 1, level});
  }
  return plan_of_steps(form, steps, budget);
}

// The cheapest plan so far.
class Cheapest {
 public:
  explicit Cheapest(const Trace& trace) : trace_(trace) {}
  // Takes the plan if it is valid and cheaper than all before. Returns whether it was taken.
  bool offer(Plan plan) {
    Simulation simulation = simulate(trace_, plan);
    if (!simulation.valid() || (plan_ && simulation.cost >= simulation_.cost)) return false;
    plan_ = std::move(plan);
    simulation_ = std::move(simulation);
    return true;
  }
  [[nodiscard]] std::optional<Plan>& plan() { return plan_; }
  [[nodiscard]] Simulation& simulation() { return simulation_; }

 private:
  const Trace& trace_;
  std::optional<Plan> plan_;
  Simulation simulation_;
};

// Returns the best plan. Empty if no plan fits; `failed` then says how far the search came.
std::optional<ChainBudgetPlan> plan_within(const ChainForm& form, Bytes budget, PlanOptions options,
                                           std::optional<PlanResult>& failed) {
  const auto start = std::chrono::steady_clock::now();
  const Trace trace = chain_trace(form);
  options.budget = budget;
  ChainBudgetPlan result;
  Cheapest cheapest(trace);
  std::chrono::duration<double> programme_time(0);
  // The programme knows nothing of tiers; `best` does.
  if (form.size() > 0) {
    const auto begun = std::chrono::steady_clock::now();
    auto rounded = plan_chain_rounded(trace, options);
    programme_time = std::chrono::steady_clock::now() - begun;
    if (rounded) {
      result.unit = rounded->unit;
      result.exact = rounded->exact;
      options.start = rounded->plan;  // also if it does not fit
      result.by_programme = cheapest.offer(std::move(rounded->plan));
    }
    for (const Id level : {0, 1}) {
      if (level == 0 ? !form.packed : !form.disk) continue;
      if (cheapest.offer(all_in_place(form, level, budget))) result.by_programme = false;
    }
    if (cheapest.plan()) options.start = cheapest.plan();
  }
  // What was spent counts, and so does what comes afterwards: the proof.
  options.time_limit -= 1.2 * (std::chrono::steady_clock::now() - start - programme_time) + programme_time;
  PlanResult best = make_plan(trace, options);
  result.plain_cost = best.plain_cost;
  result.lower_bound = best.lower_bound;
  if (best.has_plan() && cheapest.offer(std::move(best.plan))) result.by_programme = false;
  if (!cheapest.plan()) {
    failed = std::move(best);
    return std::nullopt;
  }
  result.plan = std::move(*cheapest.plan());
  result.simulation = std::move(cheapest.simulation());
  return result;
}

// Returns the better of two plans: one that uses the tiers, which takes the bytes of transit, and one that does not.
std::optional<ChainBudgetPlan> plan_both_ways(const ChainForm& form, Bytes budget, PlanOptions options,
                                              const std::function<void(double)>& progress,
                                              std::optional<PlanResult>& failed) {
  const bool two_ways = !form.tiers.empty() && form.transit > 0;
  double before = 0;  // the share of the first of two plans
  if (progress) {
    options.progress = [&](const PlanProgress& its) { progress(before + its.share_done / (two_ways ? 2 : 1)); };
  }
  if (!two_ways) return plan_within(form, budget, options, failed);
  options.time_limit /= 2;
  std::optional<ChainBudgetPlan> with;
  if (budget > form.transit) with = plan_within(form, budget - form.transit, options, failed);
  before = 0.5;
  ChainForm plain = form;
  plain.tiers.clear();
  plain.packed = plain.disk = std::nullopt;
  std::optional<ChainBudgetPlan> without = plan_within(plain, budget, options, failed);
  if (!without) return with;
  without->plan.tiers = form.tiers;  // it is a plan for this form
  if (!with) return without;
  // A plan that one of the two searches cannot find the other one may.
  with->lower_bound = without->lower_bound = std::min(with->lower_bound, without->lower_bound);
  return with->simulation.cost < without->simulation.cost ? std::move(with) : std::move(without);
}

}  // namespace

ChainBudgetPlan plan_chain_within(const ChainForm& form, Bytes budget, std::chrono::duration<double> time_limit,
                                  std::optional<std::uint64_t> moves, const ChainPlanning& planning) {
  constexpr std::chrono::milliseconds at_once(50);
  if (planning.progress) planning.progress(0);
  std::optional<PlanResult> failed;
  GrowingLimits limits(planning.at_once && !moves ? at_once : time_limit, time_limit);
  while (const auto limit = limits.next()) {
    std::function<void(double)> progress = planning.progress;
    if (progress && *limit < time_limit) {
      progress = [&](double share) { planning.progress((limits.given_before() + share * *limit) / time_limit); };
    }
    const PlanOptions options{.time_limit = *limit, .moves = moves, .cancel = planning.cancel};
    if (auto plan = plan_both_ways(form, budget, options, progress, failed)) return *std::move(plan);
    if (failed->budget < failed->floor || (planning.cancel && *planning.cancel)) break;  // more time will not help
  }
  fail(budget, *failed);
}

}  // namespace reprise
