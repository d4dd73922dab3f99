#include <algorithm>

#include "plan/search/problem.h"
#include "reprise/plan/planner.h"

namespace reprise {
namespace internal {
namespace {

// When each value that cannot be recomputed has to be there: visit(value, from, to) means from `from` + 1 to `to`.
template <typename Visit>
void each_pinned(const Problem& problem, const Timeline& timeline, const Visit& visit) {
  for (Id v = 0; v < problem.trace_values; ++v) {
    if (!problem.ways[v].empty()) continue;
    const Id maker = problem.maker[v], held_first = problem.zone_first[v];
    const Id last = timeline.last_needed(v);
    const Id taken = problem.taken_at[v] == nowhere ? last : std::min(last, problem.taken_at[v]);
    if (held_first == nowhere) {
      visit(v, maker, taken);
      continue;
    }
    if (maker != nowhere && maker < held_first) visit(v, maker, held_first);
    visit(v, problem.zone_last[v], taken);
  }
}

// By moment: the bytes of those values, each at the moment where it begins, less those that end.
std::vector<Bytes> pinned_changes(const Problem& problem, const Timeline& timeline) {
  std::vector<Bytes> changes(problem.moments + 2, 0);
  each_pinned(problem, timeline, [&](Id v, Id from, Id to) {
    if (to <= from) return;
    changes[from + 1] += problem.bytes[v];
    changes[to + 1] -= problem.bytes[v];
  });
  return changes;
}

// What a moment needs beside what is pinned.
Bytes own_need(const Problem& problem, const Timeline& timeline, Id moment) {
  Bytes need = problem.at[moment];
  const auto add = [&](Id v) {
    if (!problem.ways[v].empty() && !problem.held_while(v, moment, true)) need += problem.bytes[v];
  };
  const auto inputs = problem.inputs[moment];
  for (const Id v : inputs) add(v);
  for (const Id v : timeline.hold_starts(moment)) {
    if (problem.extra_need[v] == moment && std::find(inputs.begin(), inputs.end(), v) == inputs.end()) add(v);
  }
  return need;
}

// Returns the values that are there, the largest first.
std::vector<Id> values_there(const Problem& problem, const Timeline& timeline, Id moment) {
  std::vector<char> there(problem.trace_values, 0);
  for (const Id v : problem.inputs[moment]) there[v] = 1;
  for (const Id v : problem.outputs[moment]) there[v] = 1;
  for (Id v = 0; v < problem.trace_values; ++v) {
    const Id held_first = problem.zone_first[v];
    if (held_first != nowhere && held_first <= moment && moment <= problem.zone_last[v]) there[v] = 1;
  }
  each_pinned(problem, timeline, [&](Id v, Id from, Id to) {
    if (from < moment && moment <= to) there[v] = 1;
  });
  std::vector<Id> values;
  for (Id v = 0; v < problem.trace_values; ++v) {
    if (there[v]) values.push_back(v);
  }
  std::stable_sort(values.begin(), values.end(), [&](Id a, Id b) { return problem.bytes[a] > problem.bytes[b]; });
  return values;
}

}  // namespace
}  // namespace internal

using namespace internal;

// A moment needs what is live whatever the plan does (its own outputs, workspace and other bytes among it), its inputs,
// and every value that is still needed and cannot be recomputed.
Blocker floor_of(const Trace& trace) {
  const Timeline timeline(trace);
  const Problem problem(trace, timeline, 0, Problem::LimitedTiers::serve_all);
  Blocker floor;
  floor.proven = true;
  if (problem.moments == 0) return floor;
  const std::vector<Bytes> changes = pinned_changes(problem, timeline);
  Bytes pinned = 0;
  for (Id m = 0; m < problem.moments; ++m) {
    pinned += changes[m];
    const Bytes need = pinned + own_need(problem, timeline, m);
    if (need > floor.bytes || m == 0) {
      floor.bytes = need;
      floor.moment = m;
    }
  }
  floor.values = values_there(problem, timeline, floor.moment);
  return floor;
}

}  // namespace reprise
