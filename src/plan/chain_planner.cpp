// The chain programme as a planner: on a trace that is a chain, and on the chain of stretches that any trace is.
#include <algorithm>
#include <cmath>

#include "plan/chain_layers.h"
#include "plan/chain_plan.h"
#include "plan/planners.h"

namespace reprise {
namespace {

// Longer chains are joined to this many layers.
constexpr std::size_t most_layers = 1000;
constexpr int most_units = 500;

// As many units as the work, layers^3 / 6 * units additions, allows.
int units_for(std::size_t layers, double work) {
  const double cube = static_cast<double>(layers) * static_cast<double>(layers) * static_cast<double>(layers);
  return static_cast<int>(std::clamp(work * 6 / std::max(cube, 1.0), 1.0, static_cast<double>(most_units)));
}

// The programme's plan, or, if nothing fits the budget, the one with the smallest peak.
std::optional<Plan> plan_for(const Trace& trace, const Timeline& timeline, const Chain& chain,
                             const PlanOptions& options, int units) {
  const ChainProblem problem = measure_chain(trace, timeline, chain);
  ChainProgrammeOptions programme{.units = units, .smallest = false, .cancel = options.cancel};
  auto solution = solve_chain(problem, options.budget, programme);
  if (!solution) {
    programme.smallest = true;
    solution = solve_chain(problem, largest_bytes, programme);
  }
  if (!solution) return std::nullopt;
  return plan_of_steps(trace, timeline, chain, solution->steps, std::nullopt, options.budget);
}

}  // namespace

std::optional<Plan> plan_chain(const Trace& trace, const PlanOptions& options) {
  const Timeline timeline(trace);
  const Chain chain = joined(trace, timeline, chain_of(trace, timeline, "chain"), most_layers);
  // 500 units for up to 586 layers, 100 for 1000.
  return plan_for(trace, timeline, chain, options, units_for(chain.layers.size(), 1.68e10));
}

std::optional<Plan> plan_coarse_chain(const Trace& trace, const PlanOptions& options, double work) {
  const Timeline timeline(trace);
  const auto layers_for = [&](double units) { return static_cast<std::size_t>(std::cbrt(work * 6 / units)); };
  const Chain chain = joined(trace, timeline, coarse_chain_of(trace, timeline),
                             std::clamp<std::size_t>(layers_for(100), 2, most_layers));
  if (chain.layers.size() < 2) return std::nullopt;
  return plan_for(trace, timeline, chain, options, units_for(chain.layers.size(), work));
}

}  // namespace reprise
