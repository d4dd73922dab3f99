// The cheapest way through a chain within a byte budget.
#include <fmt/format.h>

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

}  // namespace

ChainBudgetPlan plan_chain_within(const ChainForm& form, Bytes budget, std::chrono::duration<double> time_limit,
                                  std::optional<std::uint64_t> moves) {
  const Trace trace = chain_trace(form);
  PlanOptions options{.budget = budget, .time_limit = time_limit, .moves = moves};
  ChainBudgetPlan result;
  // The programme knows nothing of tiers; `best` does.
  if (form.size() > 0) {
    if (auto rounded = plan_chain_rounded(trace, options)) {
      result.unit = rounded->unit;
      result.exact = rounded->exact;
      options.start = std::move(rounded->plan);
    }
  }
  PlanResult best = make_plan(trace, options);
  if (!best.has_plan()) fail(budget, best);
  result.plain_cost = best.plain_cost;
  result.lower_bound = best.lower_bound;
  if (options.start) {
    Simulation programme = simulate(trace, *options.start);
    if (programme.valid() && programme.cost <= best.simulation.cost) {
      result.by_programme = true;
      result.plan = std::move(*options.start);
      result.simulation = std::move(programme);
      return result;
    }
  }
  result.plan = std::move(best.plan);
  result.simulation = std::move(best.simulation);
  return result;
}

}  // namespace reprise
