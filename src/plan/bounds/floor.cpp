#include <algorithm>

#include "plan/search/problem.h"
#include "reprise/plan/planner.h"

namespace reprise {
using namespace internal;

// A moment needs what is live whatever the plan does (its own outputs, workspace and other bytes among it), its inputs,
// and every value that is still needed and cannot be rebuilt.
Blocker floor_of(const Trace& trace) {
  const Timeline timeline(trace);
  const Problem problem(trace, timeline, 0, Problem::LimitedTiers::serve_all);

  // When each value that cannot be rebuilt has to be there: from `from` + 1 to `to`.
  const auto each_pinned = [&](auto visit) {
    for (Id v = 0; v < problem.trace_values; ++v) {
      if (!problem.ways[v].empty()) continue;
      const bool made = problem.maker[v] != nowhere;
      const Id held_first = problem.zone_first[v];
      const Id last = timeline.last_needed(v);
      const Id taken = problem.taken_at[v] == nowhere ? last : std::min(last, problem.taken_at[v]);
      if (held_first == nowhere) {
        visit(v, problem.maker[v], taken);
        continue;
      }
      if (made && problem.maker[v] < held_first) visit(v, problem.maker[v], held_first);
      visit(v, problem.zone_last[v], taken);
    }
  };
  const auto is_pinned = [&](Id v) { return problem.ways[v].empty(); };

  std::vector<Bytes> pinned(problem.moments + 2, 0);
  each_pinned([&](Id v, Id from, Id to) {
    if (to <= from) return;
    pinned[from + 1] += problem.bytes[v];
    pinned[to + 1] -= problem.bytes[v];
  });
  Blocker floor;
  floor.proven = true;
  Bytes pinned_now = 0;
  for (Id m = 0; m < problem.moments; ++m) {
    pinned_now += pinned[m];
    Bytes need = problem.at[m] + pinned_now;
    const auto add = [&](Id v) {
      if (!is_pinned(v) && !problem.held_while(v, m, true)) need += problem.bytes[v];
    };
    const auto inputs = problem.inputs[m];
    for (const Id v : inputs) add(v);
    for (const Id v : timeline.hold_starts(m)) {
      if (problem.extra_need[v] == m && std::find(inputs.begin(), inputs.end(), v) == inputs.end()) add(v);
    }
    if (need > floor.bytes || m == 0) {
      floor.bytes = need;
      floor.moment = m;
    }
  }
  if (problem.moments == 0) return floor;

  const Id at = floor.moment;
  std::vector<char> there(problem.trace_values, 0);
  for (const Id v : problem.inputs[at]) there[v] = 1;
  for (const Id v : problem.outputs[at]) there[v] = 1;
  for (Id v = 0; v < problem.trace_values; ++v) {
    if (problem.zone_first[v] != nowhere && problem.zone_first[v] <= at && at <= problem.zone_last[v]) there[v] = 1;
  }
  each_pinned([&](Id v, Id from, Id to) {
    if (from < at && at <= to) there[v] = 1;
  });
  for (Id v = 0; v < problem.trace_values; ++v) {
    if (there[v]) floor.values.push_back(v);
  }
  std::stable_sort(floor.values.begin(), floor.values.end(),
                   [&](Id a, Id b) { return problem.bytes[a] > problem.bytes[b]; });
  return floor;
}

}  // namespace reprise
