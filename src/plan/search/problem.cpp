#include "plan/search/problem.h"

#include <algorithm>

namespace reprise::internal {

IdLists::IdLists(const std::vector<std::vector<Id>>& lists) {
  first_.reserve(lists.size() + 1);
  first_.push_back(0);
  for (const auto& list : lists) {
    items_.insert(items_.end(), list.begin(), list.end());
    first_.push_back(static_cast<Id>(items_.size()));
  }
}

Problem::Problem(const Trace& a_trace, const Timeline& a_timeline, Bytes a_budget, LimitedTiers limited_tiers,
                 double an_exposed)
    : trace(a_trace),
      timeline(a_timeline),
      budget(a_budget),
      exposed(an_exposed),
      moments(a_trace.moment_count()),
      trace_values(a_trace.value_count()),
      plain_cost(a_trace.total_cost()) {
  choose_copies(limited_tiers);
  nodes = moments + 2 * static_cast<Id>(copies_.size());
  values = trace_values + static_cast<Id>(copies_.size());
  describe_values();
  describe_nodes();
  describe_moments();
}

// The selection for a tier of limited capacity: the values that save most bytes over most moments for each byte of the
// tier and each unit of cost.
void Problem::choose_copies(LimitedTiers limited_tiers) {
  for (Id t = 0; t < static_cast<Id>(trace.tiers.size()); ++t) {
    const Tier& tier = trace.tiers[t];
    std::vector<Copy> candidates;
    for (const TierEntry& entry : tier.entries) {
      const Bytes saved = trace.values[entry.value].bytes - (tier.in_budget ? entry.bytes : 0);
      if (saved > 0 && timeline.last_needed(entry.value) != nowhere) candidates.push_back({entry.value, t, &entry});
    }
    if (tier.capacity && limited_tiers == LimitedTiers::serve_a_selection) {
      const auto worth = [&](const Copy& copy) {
        const Value& value = trace.values[copy.value];
        const double stretch = timeline.last_needed(copy.value) - std::max<Id>(0, timeline.made_at(copy.value));
        return static_cast<double>(value.bytes) * stretch /
               ((static_cast<double>(copy.entry->bytes) + 1) * (put_cost(copy) + get_cost(copy) + 1e-9));
      };
      std::stable_sort(candidates.begin(), candidates.end(),
                       [&](const Copy& a, const Copy& b) { return worth(a) > worth(b); });
      Bytes room = *tier.capacity;
      std::erase_if(candidates, [&](const Copy& copy) {
        if (copy.entry->bytes > room) return true;
        room -= copy.entry->bytes;
        return false;
      });
    }
    std::vector<Id>& ids = copy_ids_.emplace_back(trace_values, nowhere);
    for (const Copy& copy : candidates) {
      ids[copy.value] = static_cast<Id>(copies_.size());
      copies_.push_back(copy);
    }
  }
}

void Problem::describe_values() {
  bytes.resize(values);
  maker.resize(values);
  zone_first.assign(values, nowhere);
  zone_last.assign(values, nowhere);
  taken_at.assign(values, nowhere);
  extra_need.assign(values, nowhere);
  std::vector<std::vector<Id>> way_lists(values);
  for (Id v = 0; v < trace_values; ++v) {
    bytes[v] = trace.values[v].bytes;
    maker[v] = timeline.made_at(v);
    taken_at[v] = timeline.taken_at(v);
    if (maker[v] != nowhere && trace.replayable(maker[v])) way_lists[v].push_back(maker[v]);
    if (const auto& held = trace.values[v].held) {
      zone_first[v] = held->first;
      zone_last[v] = held->last;
      if (maker[v] != nowhere && maker[v] < held->first) extra_need[v] = held->first;
    }
  }
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const Id copy = trace_values + static_cast<Id>(i);
    const Id put = moments + 2 * static_cast<Id>(i);
    bytes[copy] = trace.tiers[copies_[i].tier].in_budget ? copies_[i].entry->bytes : 0;
    maker[copy] = put;
    way_lists[copy].push_back(put);
    way_lists[copies_[i].value].push_back(put + 1);
  }
  ways = IdLists(way_lists);
}

void Problem::describe_nodes() {
  std::vector<std::vector<Id>> in(nodes), out(nodes), user_lists(values);
  cost.resize(nodes);
  workspace.assign(nodes, 0);
  output_bytes.assign(nodes, 0);
  may_repeat.assign(nodes, 1);
  for (Id m = 0; m < moments; ++m) {
    in[m] = trace.inputs(m);
    out[m] = trace.outputs(m);
    cost[m] = trace.cost(m);
    workspace[m] = trace.workspace(m);
    may_repeat[m] = trace.replayable(m);
  }
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const Id put = moments + 2 * static_cast<Id>(i);
    const Id copy = trace_values + static_cast<Id>(i);
    in[put] = out[put + 1] = {copies_[i].value};
    out[put] = in[put + 1] = {copy};
    cost[put] = put_cost(copies_[i]);
    cost[put + 1] = get_cost(copies_[i]);
  }
  for (Id n = 0; n < nodes; ++n) {
    for (const Id v : in[n]) user_lists[v].push_back(n);
    for (const Id v : out[n]) output_bytes[n] += bytes[v];
  }
  inputs = IdLists(in);
  outputs = IdLists(out);
  users = IdLists(user_lists);
}

void Problem::describe_moments() {
  std::vector<std::vector<Id>> anchor_lists(moments + 1);
  std::vector<Bytes> held_change(moments + 2, 0);  // bytes that stretches add and take away, by moment
  for (Id v = 0; v < trace_values; ++v) {
    if (zone_first[v] == nowhere) {
      if (maker[v] == nowhere) anchor_lists[moments].push_back(v);
      continue;
    }
    const bool taken_over_then = taken_at[v] != nowhere && taken_at[v] <= zone_last[v];
    if (!taken_over_then) anchor_lists[zone_last[v]].push_back(v);
    held_change[zone_first[v]] += bytes[v];
    held_change[zone_last[v] + 1] -= bytes[v];
  }
  anchored = IdLists(anchor_lists);

  at.resize(moments);
  before.resize(moments);
  Bytes held = 0;
  for (Id m = 0; m < moments; ++m) {
    held += held_change[m];
    at[m] = before[m] = trace.moments[m].other + held;
    for (const Id v : timeline.hold_starts(m)) before[m] -= bytes[v];
    at[m] += workspace[m];
    for (const Id v : outputs[m]) {
      const bool held_from_here = zone_first[v] == m;
      if (trace.values[v].takes_over) {
        if (held_from_here) at[m] -= bytes[v];  // its storage is the input's, which is live already
      } else if (!held_from_here) {
        at[m] += bytes[v];
      }
    }
    // A stretch that starts here on a value made earlier: the value's stay before it covers this moment as well.
    for (const Id v : timeline.hold_starts(m)) {
      if (maker[v] != nowhere && maker[v] < m) at[m] -= bytes[v];
    }
  }
}

Action Problem::action(Id node, bool first) const {
  if (node < moments) return first ? Action::run(node) : Action::replay(node);
  const Copy& copy = copies_[(node - moments) / 2];
  return is_put(node) ? Action::put(copy.value, copy.tier) : Action::get(copy.value, copy.tier);
}

Id Problem::node_of(const Action& action) const {
  if (action.target < 0 || action.target >= trace_values) return nowhere;
  const Id copy = copy_ids_[action.tier][action.target];
  return copy == nowhere ? nowhere : moments + 2 * copy + (action.kind == Action::Kind::get ? 1 : 0);
}

}  // namespace reprise::internal
