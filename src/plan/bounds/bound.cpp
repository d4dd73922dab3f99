#include "plan/bounds/bound.h"

#include <algorithm>

namespace reprise::internal {
namespace {

// Costs are scaled so that their sum is this: with smaller numbers the solver's tolerances eat small costs.
constexpr double cost_sum = 1e5;
constexpr double budget_units = 1000;

int find(const std::vector<std::pair<Id, int>>& list, Id moment) {
  for (const auto& [at, variable] : list) {
    if (at == moment) return variable;
  }
  return -1;
}

// A stretch of the plain order during which a value is there: made, or no longer held by the program, at `start`, and
// used.
struct Life {
  Id start;
  std::vector<Id> uses;  // positions in the value's list of first uses
};

std::vector<Life> lives_of(const Problem& problem, const std::vector<Id>& uses, Id v) {
  std::vector<Life> lives;
  const bool held = problem.zone_first[v] != nowhere;
  const bool before_held = held && problem.maker[v] != nowhere && problem.maker[v] < problem.zone_first[v];
  if (!held || before_held) lives.push_back({problem.maker[v], {}});
  if (held) lives.push_back({problem.zone_last[v], {}});
  for (Id k = 0; k < static_cast<Id>(uses.size()); ++k) {
    const bool early = before_held && uses[k] <= problem.zone_first[v];
    (early ? lives.front() : lives.back()).uses.push_back(k);
  }
  return lives;
}

// Calls visit(from, to) for the stretches between uses of the value with at least one moment strictly inside.
template <typename Visit>
void each_gap(const Problem& problem, const std::vector<Id>& uses, Id v, Visit visit) {
  for (const Life& life : lives_of(problem, uses, v)) {
    Id from = life.start;
    for (const Id k : life.uses) {
      if (uses[k] - from > 1) visit(k, from, uses[k]);
      from = uses[k];
    }
  }
}

// What could be absent at a moment. All outputs of a maker come back with one replay.
struct Absent {
  Id maker;
  Bytes bytes;
  double cost;
};

// By moment: the live bytes of the plain order.
std::vector<Bytes> plain_live_bytes(const Problem& problem, const std::vector<std::vector<Id>>& uses) {
  std::vector<Bytes> live(problem.moments + 2, 0);
  for (Id v = 0; v < problem.trace_values; ++v) {
    for (const Life& life : lives_of(problem, uses[v], v)) {
      if (life.uses.empty()) continue;
      live[life.start + 1] += problem.bytes[v];
      live[uses[v][life.uses.back()] + 1] -= problem.bytes[v];
    }
  }
  Bytes there = 0;
  for (Id m = 0; m < problem.moments; ++m) {
    there += live[m];
    live[m] = there + problem.at[m];
  }
  return live;
}

// Returns the moment where the plain order needs most, and some of those above the budget. Empty if it fits.
std::vector<Id> moments_to_try(const Problem& problem, const std::vector<Bytes>& live) {
  constexpr int spread = 32;
  std::vector<Id> above;
  Id peak = 0;
  for (Id m = 0; m < problem.moments; ++m) {
    if (live[m] > problem.budget) above.push_back(m);
    if (live[m] > live[peak]) peak = m;
  }
  if (above.empty()) return {};
  std::vector<Id> tried{peak};
  for (int i = 0; i < spread; ++i) tried.push_back(above[above.size() * i / spread]);
  return tried;
}

// By moment tried.
std::vector<std::vector<Absent>> what_could_be_absent(const Problem& problem, const std::vector<std::vector<Id>>& uses,
                                                      const std::vector<Id>& tried) {
  std::vector<std::vector<Absent>> absent(tried.size());
  for (Id v = 0; v < problem.trace_values; ++v) {
    if (problem.ways[v].empty()) continue;
    double cost = problem.cost[problem.ways[v].front()];
    for (const Id way : problem.ways[v]) cost = std::min(cost, problem.cost[way]);
    each_gap(problem, uses[v], v, [&](Id, Id from, Id to) {
      for (std::size_t i = 0; i < tried.size(); ++i) {
        if (from < tried[i] && tried[i] < to) absent[i].push_back({problem.maker[v], problem.bytes[v], cost});
      }
    });
  }
  return absent;
}

std::vector<Absent> merged_by_maker(std::vector<Absent> list) {
  std::stable_sort(list.begin(), list.end(), [](const Absent& a, const Absent& b) { return a.maker < b.maker; });
  std::vector<Absent> merged;
  for (const Absent& item : list) {
    if (!merged.empty() && item.maker != nowhere && merged.back().maker == item.maker) {
      merged.back().bytes += item.bytes;
      merged.back().cost = std::min(merged.back().cost, item.cost);
    } else {
      merged.push_back(item);
    }
  }
  return merged;
}

// Returns the least that replays cost that free `bytes`: the cheapest per byte first, and a share of the last.
double cheapest_way_to_free(double missing, std::vector<Absent> absent) {
  std::sort(absent.begin(), absent.end(), [](const Absent& a, const Absent& b) {
    return a.cost * static_cast<double>(b.bytes) < b.cost * static_cast<double>(a.bytes);
  });
  double cost = 0;
  for (const Absent& item : absent) {
    if (missing <= 0) break;
    if (item.bytes == 0) continue;
    const double share = std::min(1.0, missing / static_cast<double>(item.bytes));
    cost += share * item.cost;
    missing -= share * static_cast<double>(item.bytes);
  }
  return cost;
}

}  // namespace

std::size_t largest_program_within(std::optional<Bytes> memory) {
  constexpr Bytes per_nonzero = 512;  // measured: 370 to 510, on programs of 3 800 and 20 000
  if (!memory) return largest_program;
  return std::min(largest_program, static_cast<std::size_t>(std::max<Bytes>(0, *memory) / per_nonzero));
}

double quick_bound(const Problem& problem, const std::vector<std::vector<Id>>& uses) {
  const std::vector<Bytes> live = plain_live_bytes(problem, uses);
  const std::vector<Id> tried = moments_to_try(problem, live);
  const std::vector<std::vector<Absent>> absent = what_could_be_absent(problem, uses, tried);
  double best = 0;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const auto missing = static_cast<double>(live[tried[i]] - problem.budget);
    best = std::max(best, cheapest_way_to_free(missing, merged_by_maker(absent[i])));
  }
  return problem.plain_cost + best * (1 - 1e-12);
}

BoundProgram::BoundProgram(const Problem& problem, const std::vector<std::vector<Id>>& uses, std::vector<Id> pivots)
    : problem_(problem),
      uses_(uses),
      cost_scale_(problem.plain_cost > 0 ? cost_sum / problem.plain_cost : 1),
      bytes_scale_(budget_units / std::max(1.0, static_cast<double>(problem.budget))),
      pivots_(std::move(pivots)),
      dead_after_(problem.trace_values),
      there_(problem.moments + 2, 0),
      changes_(problem.moments + 2),
      kept_(problem.trace_values),
      recomputed_(problem.trace_values),
      again_(problem.trace_values),
      charges_(problem.trace_values),
      puts_((problem.nodes - problem.moments) / 2, -1) {
  for (Id v = 0; v < problem.trace_values; ++v) {
    const Id last_use = uses[v].empty() ? problem.maker[v] : uses[v].back();
    dead_after_[v] = std::max(last_use, problem.zone_last[v]);
  }
  add_lives();
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const auto [value, after] = pending_[i];
    require_inputs(recomputed(value, after), problem_.maker[value], after);
  }
  add_requirements();
  add_counts();
  add_memory();
}

void BoundProgram::add_lives() {
  for (Id v = 0; v < problem_.trace_values; ++v) {
    const double bytes = static_cast<double>(problem_.bytes[v]) * bytes_scale_;
    for (const Life& life : lives_of(problem_, uses_[v], v)) {
      if (life.uses.empty()) continue;
      there_[life.start + 1] += bytes;
      there_[uses_[v][life.uses.back()] + 1] -= bytes;
    }
    if (problem_.ways[v].empty()) continue;
    each_gap(problem_, uses_[v], v, [&](Id use_index, Id from, Id to) { add_gap(v, use_index, from, to); });
  }
}

void BoundProgram::add_gap(Id v, Id use_index, Id from, Id to) {
  const double bytes = static_cast<double>(problem_.bytes[v]) * bytes_scale_;
  const int absent = program_.variable(0, 0, 1, true);
  gaps_.push_back({v, use_index, absent});
  const auto ways = problem_.ways[v];
  const bool replayable = ways.front() < problem_.moments;
  if (ways.size() == 1 && replayable) {
    charge(v, absent);
    // Cut at the pivots: absent at some moment of the segment.
    std::vector<Id> cuts{from};
    for (const Id p : pivots_) {
      if (p > from && p < to - 1) cuts.push_back(p);
    }
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      int segment = absent;
      if (cuts.size() > 1) {
        segment = program_.variable(0, 0, 1);
        program_.row({{segment, 1}, {absent, -1}}, -LinearProgram::infinity(), 0);
      }
      occupy(segment, cuts[i] + 1, i + 1 < cuts.size() ? cuts[i + 1] + 1 : to, -bytes);
      require_inputs(segment, problem_.maker[v], cuts[i]);
    }
    return;
  }
  // Recomputed by a replay, or by gets alone: then a copy is there whenever the value is not.
  LinearProgram::Terms choice{{absent, 1}};
  occupy(absent, from + 1, to, -bytes);
  for (const Id way : ways) {
    if (way < problem_.moments) {
      const int replayed = program_.variable(0, 0, 1, true);
      charge(v, replayed);
      require_inputs(replayed, way, from);
      choice.push_back({replayed, -1});
      continue;
    }
    const int got = program_.variable(problem_.cost[way] * cost_scale_, 0, 1, true);
    choice.push_back({got, -1});
    const Id copy = problem_.inputs[way].front();
    occupy(got, from + 1, to, static_cast<double>(problem_.bytes[copy]) * bytes_scale_);
    int& put = puts_[(way - problem_.moments) / 2];  // one put can serve all gets of the value
    if (put < 0) put = program_.variable(problem_.cost[way - 1] * cost_scale_, 0, 1);
    program_.row({{got, 1}, {put, -1}}, -LinearProgram::infinity(), 0);
  }
  program_.row(choice, -LinearProgram::infinity(), 0);
}

void BoundProgram::charge(Id v, int variable) {
  charges_[v].push_back({variable, 1});
}

void BoundProgram::occupy(int variable, Id from, Id to, double amount) {
  changes_[from].push_back({variable, amount});
  changes_[to].push_back({variable, -amount});
}

// Requires the inputs of a replay of the node after this moment, if `variable` stands for one.
void BoundProgram::require_inputs(int variable, Id node, Id at) {
  const bool pivot = std::binary_search(pivots_.begin(), pivots_.end(), at);
  for (const Id u : problem_.inputs[node]) {
    if (dead_after_[u] > at) continue;
    const auto ways = problem_.ways[u];
    if (!ways.empty() && (ways.size() > 1 || ways.front() >= problem_.moments)) continue;  // a copy may serve
    requirements_.push_back({variable, u, at, pivot});
    if (find(kept_[u], at) < 0) kept_[u].push_back({at, 0});
    if (ways.empty()) continue;
    recomputed(u, dead_after_[u]);
    if (pivot) recomputed(u, at);
  }
}

// Returns the variable for "recomputed after this moment", which is a pivot or the value's last one.
int BoundProgram::recomputed(Id u, Id after) {
  if (const int known = find(recomputed_[u], after); known >= 0) return known;
  const int variable = program_.variable(0, 0, 1);
  if (after == dead_after_[u]) charge(u, variable);
  recomputed_[u].push_back({after, variable});
  pending_.push_back({u, after});
  return variable;
}

void BoundProgram::add_requirements() {
  const double none = -LinearProgram::infinity();
  for (Id u = 0; u < problem_.trace_values; ++u) {
    const double bytes = static_cast<double>(problem_.bytes[u]) * bytes_scale_;
    std::sort(recomputed_[u].begin(), recomputed_[u].end());
    for (std::size_t i = 1; i < recomputed_[u].size(); ++i) {  // later implies earlier
      program_.row({{recomputed_[u][i].second, 1}, {recomputed_[u][i - 1].second, -1}}, none, 0);
    }
    std::sort(kept_[u].begin(), kept_[u].end());
    Id from = dead_after_[u];
    for (std::size_t i = 0; i < kept_[u].size(); ++i) {
      auto& [at, variable] = kept_[u][i];
      variable = program_.variable(0, 0, 1);
      if (at > from) occupy(variable, from + 1, at + 1, bytes);
      if (i > 0) program_.row({{variable, 1}, {kept_[u][i - 1].second, -1}}, none, 0);
      from = std::max(from, at);
    }
  }
  for (const Requirement& need : requirements_) {
    const Id u = need.value;
    const Id dead = dead_after_[u];
    LinearProgram::Terms row{{need.variable, 1}, {find(kept_[u], need.at), -1}};
    if (!problem_.ways[u].empty()) row.push_back({find(recomputed_[u], need.pivot ? need.at : dead), -1});
    if (need.pivot && need.at > dead && !problem_.ways[u].empty()) {
      int there_again = find(again_[u], need.at);
      if (there_again < 0) {
        there_again = program_.variable(0, 0, 1);
        again_[u].push_back({need.at, there_again});
        program_.row({{there_again, 1}, {find(recomputed_[u], dead), -1}}, none, 0);
        occupy(there_again, need.at, need.at + 1, static_cast<double>(problem_.bytes[u]) * bytes_scale_);
      }
      row.push_back({there_again, -1});
    }
    program_.row(row, none, 0);
  }
}

// A replay makes all outputs of its operator: it is paid once, by the output that needs most replays.
void BoundProgram::add_counts() {
  for (Id m = 0; m < problem_.moments; ++m) {
    const auto outputs = problem_.outputs[m];
    const double cost = problem_.cost[m] * cost_scale_;
    if (outputs.size() == 1) {
      for (const auto& [variable, once] : charges_[outputs.front()]) program_.add_cost(variable, cost * once);
      continue;
    }
    std::size_t most = 0;
    for (const Id v : outputs) most = std::max(most, charges_[v].size());
    if (most == 0) continue;
    const int count = program_.variable(cost, 0, static_cast<double>(most));
    for (const Id v : outputs) {
      if (charges_[v].empty()) continue;
      LinearProgram::Terms row = charges_[v];
      row.push_back({count, -1});
      program_.row(row, -LinearProgram::infinity(), 0);
    }
  }
}

// One variable for the bytes of values at each moment. Where no variable changes them they differ only by a number from
// those of the moment before, and the same variable serves both.
void BoundProgram::add_memory() {
  int now = -1;
  double beside = 0;  // added to the variable
  for (Id t = 0; t < problem_.moments; ++t) {
    beside += there_[t];
    if (now < 0 || !changes_[t].empty()) {
      const int before = now;
      now = program_.variable(0, 0, 2 * budget_units);
      LinearProgram::Terms row{{now, 1}};
      if (before >= 0) row.push_back({before, -1});
      for (const auto& [variable, amount] : changes_[t]) row.push_back({variable, -amount});
      program_.row(row, beside, beside);
      beside = 0;
    }
    const double room = budget_units - static_cast<double>(problem_.at[t]) * bytes_scale_ - beside;
    program_.limit(now, std::max(room, 0.0));
  }
}

BoundProgram::Result BoundProgram::solve(const SolveOptions& options) const {
  const ProgramResult found = internal::solve(program_, options);
  Result result;
  result.infeasible = found.status == ProgramResult::Status::infeasible;
  result.complete = found.status == ProgramResult::Status::optimal;
  if (found.bound) result.cost = problem_.plain_cost + std::max(0.0, *found.bound) / cost_scale_;
  if (!found.x.empty()) {
    Guidance guidance;
    guidance.absent.resize(uses_.size());
    for (std::size_t v = 0; v < uses_.size(); ++v) guidance.absent[v].assign(uses_[v].size(), 0);
    for (const Gap& gap : gaps_) {
      guidance.absent[gap.value][gap.use_index] = static_cast<float>(std::clamp(found.x[gap.variable], 0.0, 1.0));
    }
    result.absent = std::move(guidance);
  }
  return result;
}

}  // namespace reprise::internal
