// The chain programme as a planner: on a trace that is a chain, and on the chain of stretches that any trace is.
#include <algorithm>
#include <chrono>
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

// Long parts end with the smallest state of each of `count` stretches: where a part ends the next one begins, and what
// is remembered there for long should be small.
LongParts long_parts(const ChainProblem& problem, std::size_t stretches) {
  constexpr int short_part = 16;
  LongParts parts{short_part, {}};
  const std::size_t layers = problem.layers.size();
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto begin = problem.layers.begin() + static_cast<std::ptrdiff_t>(i * layers / stretches);
    const auto end = problem.layers.begin() + static_cast<std::ptrdiff_t>((i + 1) * layers / stretches);
    const auto smallest = std::min_element(
        begin, end, [](const ChainLayer& a, const ChainLayer& b) { return a.state_bytes < b.state_bytes; });
    if (begin != end) parts.end_with.push_back(static_cast<int>(smallest - problem.layers.begin()) + 1);
  }
  return parts;
}

// Returns the same in about this many additions whatever the number of layers: with all parts if that is possible, else
// with as many long ones as are.
Candidate solve_within(const Trace& trace, const Timeline& timeline, const ChainShape& chain, Bytes budget, double work,
                       ChainProgrammeOptions options) {
  const std::size_t layers = chain.layers.size();
  options.units = most_units;
  const ChainProblem problem = measure_chain(trace, timeline, chain);
  if (units_for(layers, work) < most_units) {
    if (layers > 500 || work < 2e8) options.units = most_units / 2;
    // A table of long parts does not fit into a cache, and is half as fast.
    const double pairs = std::sqrt(work / 2 * 6 / (static_cast<double>(layers) * options.units));
    options.long_parts = long_parts(problem, static_cast<std::size_t>(std::max(pairs, 4.0)));
  }
  return {chain, solve_chain(problem, budget, options)};
}

std::optional<Plan> plan_of(const Trace& trace, const Timeline& timeline, const Candidate& candidate, Bytes budget) {
  if (!candidate.programme) return std::nullopt;
  return plan_of_steps(trace, timeline, candidate.chain, candidate.programme->steps, std::nullopt, budget);
}

}  // namespace

std::optional<RoundedPlan> plan_chain_rounded(const Trace& trace, const PlanOptions& options) {
  // About 0.7 seconds on a machine that is not busy.
  constexpr double most_work = 1e9;
  const double seconds = options.time_limit.count();
  const double work = options.moves ? most_work : std::clamp(2e8 * seconds, 1e6, most_work);
  ChainProgrammeOptions programme{.cancel = options.cancel};
  if (!options.moves) {
    const auto limit = std::chrono::duration<double>(std::clamp(seconds / 2, 0.0, 1e6));
    programme.deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
  }
  const Timeline timeline(trace);
  const ChainShape chain = joined(trace, timeline, chain_of(trace, timeline, "chain"), most_layers);
  Candidate best;
  const auto attempt = [&](ChainProgrammeOptions::Rounding rounding, Bytes budget, double share) {
    programme.rounding = rounding;
    Candidate next = solve_within(trace, timeline, chain, budget, share * work, programme);
    if (next.programme && (!best.programme || next.programme->cost < best.programme->cost)) best = std::move(next);
  };
  using Rounding = ChainProgrammeOptions::Rounding;
  // Many layers lose more by rounding up than anything else does; of few it is not known before.
  const bool many = units_for(chain.layers.size(), work) < most_units;
  attempt(many ? Rounding::even : Rounding::up, options.budget, 1);
  if (!best.programme || (!many && !best.programme->exact)) {
    attempt(many ? Rounding::up : Rounding::even, options.budget, 0.5);
  }
  if (!best.programme) {
    programme.smallest = true;
    attempt(Rounding::up, largest_bytes, 0.5);
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
