#include "plan/search/recomputer.h"

#include <algorithm>
#include <cassert>

#include "plan/drops.h"

namespace reprise::internal {

std::vector<char> recomputable(const Trace& trace, const Timeline& timeline) {
  std::vector<char> result(trace.values.size(), 0);
  for (Id m = 0; m < trace.moment_count(); ++m) {
    if (!trace.replayable(m)) continue;
    const auto& inputs = trace.inputs(m);
    const bool inputs_can_be_had = std::all_of(
        inputs.begin(), inputs.end(), [&](Id input) { return timeline.taken_at(input) == nowhere || result[input]; });
    for (const Id v : trace.outputs(m)) result[v] = inputs_can_be_had;
  }
  return result;
}

Recomputer::Recomputer(const Trace& trace, const Timeline& timeline)
    : trace_(trace),
      timeline_(timeline),
      recomputable_(recomputable(trace, timeline)),
      at_hand_(trace.values.size(), 0),
      to_evict_(trace.values.size(), 0),
      copy_(trace.values.size(), nowhere),
      taken_(trace.moments.size(), 0) {
  for (Id v = 0; v < trace.value_count(); ++v) at_hand_[v] = timeline.made_at(v) == nowhere;
}

std::vector<Id> Recomputer::missing(Id moment) const {
  std::vector<Id> values;
  for (const Id v : trace_.inputs(moment)) {
    if (!at_hand_[v]) values.push_back(v);
  }
  for (const Id v : timeline_.hold_starts(moment)) {
    if (timeline_.made_at(v) < moment && !at_hand_[v]) values.push_back(v);
  }
  return values;
}

void Recomputer::run_next() {
  const Id moment = next_;
  if (const auto values = missing(moment); !values.empty()) recompute(values);
  actions_.push_back(Action::run(moment));
  ++next_;
  for (const Id v : trace_.outputs(moment)) {
    if (const auto& input = trace_.values[v].takes_over) at_hand_[*input] = 0;
    at_hand_[v] = 1;
  }
  for (const Id v : timeline_.hold_ends(moment)) {
    if (to_evict_[v]) at_hand_[v] = to_evict_[v] = 0;
  }
}

void Recomputer::run_until(Id moment) {
  while (next_ < moment) run_next();
}

// Gets what has a copy and fills batch_ with the moments to replay. A value that is missing and has no copy was
// evicted, or taken over on the way to something that can be recomputed: its maker can be replayed, and makers always
// come earlier, so this ends.
void Recomputer::get_and_collect(std::span<const Id> values) {
  stack_.assign(values.begin(), values.end());
  while (!stack_.empty()) {
    const Id v = stack_.back();
    stack_.pop_back();
    if (at_hand_[v]) continue;
    if (copy_[v] != nowhere) {
      actions_.push_back(Action::get(v, copy_[v]));
      make(v);
      continue;
    }
    assert(recomputable_[v]);
    const Id maker = timeline_.made_at(v);
    if (taken_[maker] == recomputes_) continue;
    taken_[maker] = recomputes_;
    batch_.push_back(maker);
    const auto& inputs = trace_.inputs(maker);
    stack_.insert(stack_.end(), inputs.begin(), inputs.end());
  }
  std::sort(batch_.begin(), batch_.end());
}

void Recomputer::make(Id value) {
  if (at_hand_[value]) return;
  at_hand_[value] = 1;
  made_.push_back(value);
}

void Recomputer::recompute(std::span<const Id> values) {
  ++recomputes_;
  batch_.clear();
  made_.clear();
  get_and_collect(values);
  for (const Id m : batch_) {
    actions_.push_back(Action::replay(m));
    for (const Id v : trace_.outputs(m)) make(v);
  }
  for (const Id v : made_) at_hand_[v] = 0;
  for (const Id v : values) {
    at_hand_[v] = 1;
    to_evict_[v] = 0;
  }
}

void Recomputer::evict(Id value) {
  if (!at_hand_[value] || (!recomputable_[value] && copy_[value] == nowhere)) return;
  const auto& held = trace_.values[value].held;
  const bool held_now = held && held->first < next_ && next_ <= held->last;
  (held_now ? to_evict_[value] : at_hand_[value]) = held_now;
}

void Recomputer::put(Id value, Id tier) {
  if (copy_[value] != nowhere) return;
  actions_.push_back(Action::put(value, tier));
  copy_[value] = tier;
}

void Recomputer::evict_copy(Id value) {
  if (recomputable_[value]) copy_[value] = nowhere;
}

Plan Recomputer::finish(std::vector<Tier> tiers, Bytes budget) {
  run_until(trace_.moment_count());
  return with_drops(trace_, timeline_, std::move(tiers), actions_, budget);
}

}  // namespace reprise::internal
