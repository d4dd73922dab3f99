// The chain programme as a planner: on a trace that is a chain, and on the chain of stretches that any trace is.
#include <algorithm>
#include <cmath>

#include "plan/chains/chain_layers.h"
#include "plan/chains/chain_plan.h"
#include "plan/planners.h"
#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

// Longer chains are joined to this many layers.
constexpr std::size_t most_layers = 1000;
constexpr std::size_t most_layers_even = 300;
constexpr int most_units = 500;

// As many units as the work, layers^3 / 6 * units additions, allows.
int units_for(std::size_t layers, double work) {
  const double cube = static_cast<double>(layers) * static_cast<double>(layers) * static_cast<double>(layers);
  return static_cast<int>(std::clamp(work * 6 / std::max(cube, 1.0), 1.0, static_cast<double>(most_units)));
}

// A schedule for a chain in a trace.
struct Candidate {
  ChainShape chain;
  std::optional<ChainProgramme> programme;
};

Candidate solve(const Trace& trace, const Timeline& timeline, ChainShape chain, Bytes budget, double work,
                ChainProgrammeOptions options) {
  options.units = units_for(chain.layers.size(), work);
  auto programme = solve_chain(measure_chain(trace, timeline, chain), budget, options);
  return {std::move(chain), std::move(programme)};
}

std::optional<Plan> plan_of(const Trace& trace, const Timeline& timeline, const Candidate& candidate, Bytes budget) {
  if (!candidate.programme) return std::nullopt;
  return plan_of_steps(trace, timeline, candidate.chain, candidate.programme->steps, std::nullopt, budget);
}

}  // namespace

std::optional<RoundedPlan> plan_chain_rounded(const Trace& trace, const PlanOptions& options) {
  // 500 units for up to 586 layers, 100 for 1000; about ten seconds at most.
  constexpr double work = 1.68e10, work_even = 1.6e9;
  const Timeline timeline(trace);
  const ChainShape chain = joined(trace, timeline, chain_of(trace, timeline, "chain"), most_layers);
  Candidate best = solve(trace, timeline, chain, options.budget, work, {.cancel = options.cancel});
  if (!best.programme || !best.programme->exact) {
    // Many small layers lose more by rounding up than by being joined.
    Candidate even = solve(trace, timeline, joined(trace, timeline, chain, most_layers_even), options.budget, work_even,
                           {.rounding = ChainProgrammeOptions::Rounding::even, .cancel = options.cancel});
    if (even.programme && (!best.programme || even.programme->cost < best.programme->cost)) best = std::move(even);
  }
  if (!best.programme) {
    best = solve(trace, timeline, chain, largest_bytes, work, {.smallest = true, .cancel = options.cancel});
  }
  auto plan = plan_of(trace, timeline, best, options.budget);
  if (!plan) return std::nullopt;
  return RoundedPlan{std::move(*plan), best.programme->unit, best.programme->exact};
}

std::optional<Plan> plan_chain(const Trace& trace, const PlanOptions& options) {
  auto rounded = plan_chain_rounded(trace, options);
  if (!rounded) return std::nullopt;
  return std::move(rounded->plan);
}

std::optional<Plan> plan_chain_seed(const Trace& trace, const PlanOptions& options, double work) {
  const Timeline timeline(trace);
  std::vector<ChainShape> chains{coarse_chain_of(trace, timeline)};
  try {
    chains.push_back(chain_of(trace, timeline, "chain"));
  } catch (const BadOption&) {
    // then there is only the coarse one
  }
  work /= static_cast<double>(chains.size());
  // At least a hundred units, or units would be larger than what is to be remembered.
  const auto affordable = static_cast<std::size_t>(std::cbrt(work * 6 / 100));
  const std::size_t layers = std::clamp<std::size_t>(affordable, 2, most_layers_even);
  Candidate best;
  for (ChainShape& chain : chains) {
    chain = joined(trace, timeline, chain, layers);
    if (chain.layers.size() < 2) continue;
    Candidate next = solve(trace, timeline, chain, options.budget, work,
                           {.rounding = ChainProgrammeOptions::Rounding::even, .cancel = options.cancel});
    if (next.programme && (!best.programme || next.programme->cost < best.programme->cost)) best = std::move(next);
  }
  if (best.programme) return plan_of(trace, timeline, best, options.budget);
  for (const ChainShape& chain : chains) {
    if (chain.layers.size() < 2) continue;
    Candidate next = solve(trace, timeline, chain, largest_bytes, work, {.smallest = true, .cancel = options.cancel});
    if (next.programme && (!best.programme || next.programme->peak < best.programme->peak)) best = std::move(next);
  }
  return plan_of(trace, timeline, best, options.budget);
}

}  // namespace reprise::internal
