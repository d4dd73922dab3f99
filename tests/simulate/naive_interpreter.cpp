#include "simulate/naive_interpreter.h"

#include <algorithm>

namespace reprise::testing {
namespace {

bool contains(const std::vector<Id>& list, Id v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

class Definitions {
 public:
  Definitions(const Trace& trace, const Plan& plan) : trace_(trace), plan_(plan) {}

  // Moments that have run before action i.
  Id moments_run(std::size_t i) const {
    return static_cast<Id>(std::count_if(plan_.actions.begin(), plan_.actions.begin() + static_cast<std::ptrdiff_t>(i),
                                         [](const Action& action) { return action.kind == Action::Kind::run; }));
  }

  Id made_at(Id v) const {
    for (Id m = 0; m < trace_.moment_count(); ++m) {
      if (contains(trace_.outputs(m), v)) return m;
    }
    return -1;
  }

  bool comes_from_outside(Id v) const { return made_at(v) < 0; }

  Id taken_over_at(Id v) const {
    for (Id output = 0; output < trace_.value_count(); ++output) {
      if (trace_.values[output].takes_over == v) return made_at(output);
    }
    return -1;
  }

  bool held_between(Id v, Id moments_done) const {  // the stretch has started and has not ended
    const auto& held = trace_.values[v].held;
    if (!held || held->first >= moments_done || held->last < moments_done) return false;
    const Id taken = taken_over_at(v);
    return taken < 0 || taken >= moments_done;
  }

  bool held_during(Id v, Id moment) const {
    const auto& held = trace_.values[v].held;
    return held && held->first <= moment && moment <= held->last && taken_over_at(v) != moment;
  }

  // Whether the plan itself has the value before action i: the last thing that happened to it brought it.
  bool ours(Id v, std::size_t i) const {
    for (std::size_t back = i; back-- > 0;) {
      const Action& action = plan_.actions[back];
      switch (action.kind) {
        case Action::Kind::run:
          if (contains(trace_.outputs(action.target), v)) return true;
          if (taken_over_at(v) == action.target) return false;
          if (comes_from_outside(v) && trace_.values[v].held && trace_.values[v].held->first == action.target)
            return true;
          break;
        case Action::Kind::replay:
          if (contains(trace_.outputs(action.target), v)) return true;
          break;
        case Action::Kind::drop:
          if (action.target == v) return false;
          break;
        case Action::Kind::put: break;
        case Action::Kind::get:
          if (action.target == v) return true;
          break;
      }
    }
    return comes_from_outside(v) && !trace_.values[v].held;
  }

  bool resident(Id v, std::size_t i) const { return ours(v, i) || held_between(v, moments_run(i)); }

  // A copy is there from its put to the last get before the next put of the same value there.
  bool has_copy(Id v, Id t, std::size_t i) const {
    const auto is = [&](std::size_t k, Action::Kind kind) {
      return plan_.actions[k].kind == kind && plan_.actions[k].target == v && plan_.actions[k].tier == t;
    };
    for (std::size_t put = i; put-- > 0;) {
      if (!is(put, Action::Kind::put)) continue;
      bool got = false, got_later = false;
      for (std::size_t k = put + 1; k < plan_.actions.size() && !is(k, Action::Kind::put); ++k) {
        if (!is(k, Action::Kind::get)) continue;
        got = true;
        got_later = got_later || k >= i;
      }
      return !got || got_later;
    }
    return false;
  }

  Bytes tier_bytes(Id t, std::size_t i) const {
    Bytes sum = 0;
    for (const TierEntry& entry : plan_.tiers[t].entries) sum += has_copy(entry.value, t, i) ? entry.bytes : 0;
    return sum;
  }

  Bytes counted_tier_bytes(std::size_t i) const {
    Bytes sum = 0;
    for (Id t = 0; t < static_cast<Id>(plan_.tiers.size()); ++t) sum += plan_.tiers[t].in_budget ? tier_bytes(t, i) : 0;
    return sum;
  }

  Bytes resident_bytes(std::size_t i) const {
    Bytes sum = 0;
    for (Id v = 0; v < trace_.value_count(); ++v) sum += resident(v, i) ? trace_.values[v].bytes : 0;
    return sum;
  }

  // Other bytes while action i takes place: those of the next moment to run; a drop has those of the action before it.
  Bytes other(std::size_t i) const {
    while (plan_.actions[i].kind == Action::Kind::drop) {
      if (i == 0) return 0;
      --i;
    }
    if (trace_.moments.empty()) return 0;
    return trace_.moments[std::min(moments_run(i), trace_.moment_count() - 1)].other;
  }

  // Live bytes while action i, which is allowed, takes place.
  Bytes live(std::size_t i) const {
    const Action& action = plan_.actions[i];
    Bytes sum = other(i) + counted_tier_bytes(i);
    const auto entry_bytes = [&] { return plan_.tiers[action.tier].find(action.target)->bytes; };
    switch (action.kind) {
      case Action::Kind::run:
        for (Id v = 0; v < trace_.value_count(); ++v) {
          const bool there = ours(v, i + 1) || held_during(v, action.target);
          if (there) sum += trace_.values[v].bytes;
        }
        return sum + trace_.workspace(action.target);
      case Action::Kind::replay:
        for (const Id v : trace_.outputs(action.target)) sum += trace_.values[v].bytes;
        return sum + resident_bytes(i) + trace_.workspace(action.target);
      case Action::Kind::drop: return sum + resident_bytes(i + 1);
      case Action::Kind::put: return sum + resident_bytes(i) + (plan_.tiers[action.tier].in_budget ? entry_bytes() : 0);
      case Action::Kind::get: return sum + resident_bytes(i + 1);
    }
    return sum;
  }

 private:
  const Trace& trace_;
  const Plan& plan_;
};

// When things happen, by the rules about time in trace.h. Asked for one action after the other.
class Times {
 public:
  Times(const Trace& trace, const Plan& plan, const Definitions& is)
      : trace_(trace),
        plan_(plan),
        is_(is),
        overlaps_(std::any_of(plan.tiers.begin(), plan.tiers.end(), [](const Tier& tier) { return tier.overlaps(); })) {
  }

  [[nodiscard]] double now() const { return ends_.empty() ? 0 : ends_.back(); }

  void pass(std::size_t i) {
    const Action& action = plan_.actions[i];
    double now = this->now();
    transfer_ends_.push_back(0);
    switch (action.kind) {
      case Action::Kind::run:
      case Action::Kind::replay: {
        const bool runs = action.kind == Action::Kind::run;
        for (Id v = 0; v < trace_.value_count(); ++v) {
          if (contains(trace_.inputs(action.target), v)) now = std::max(now, there(v, i));
          if (!runs) continue;
          if (is_.taken_over_at(v) == action.target) now = std::max(now, idle(v, i));
          const auto& held = trace_.values[v].held;
          if (held && held->first == action.target && is_.resident(v, i)) now = std::max(now, idle(v, i));
        }
        now += trace_.cost(action.target);
        break;
      }
      case Action::Kind::drop:
        if (!is_.resident(action.target, i + 1)) now = std::max(now, idle(action.target, i));
        break;
      case Action::Kind::put:
      case Action::Kind::get: {
        const TierEntry& entry = *plan_.tiers[action.tier].find(action.target);
        const bool put = action.kind == Action::Kind::put;
        now += put ? entry.put_cost : entry.get_cost;
        const double from = put ? there(action.target, i) : end_of_last(Action::Kind::put, i, action.target);
        const double time = put ? entry.put_time : entry.get_time;
        if (!plan_.tiers[action.tier].overlaps()) break;
        transfer_ends_.back() = std::max({now, from, tier_free(action, i)}) + time;
        if (put && is_.held_between(action.target, is_.moments_run(i))) now = transfer_ends_.back();
        break;
      }
    }
    ends_.push_back(now);
  }

 private:
  // The end of the last transfer of this kind before action i in the tier of that action; of this value, if one is
  // named.
  [[nodiscard]] double end_of_last(Action::Kind kind, std::size_t i, Id value = -1) const {
    for (std::size_t k = i; k-- > 0;) {
      const Action& action = plan_.actions[k];
      if (action.kind != kind || action.tier != plan_.actions[i].tier) continue;
      if (value < 0 || action.target == value) return transfer_ends_[k];
    }
    return 0;
  }
  [[nodiscard]] double tier_free(const Action& action, std::size_t i) const {
    const Tier& tier = plan_.tiers[action.tier];
    const double puts = end_of_last(Action::Kind::put, i), gets = end_of_last(Action::Kind::get, i);
    if (!tier.duplex) return std::max(puts, gets);
    if (action.kind == Action::Kind::get) return gets;
    return tier.capacity ? std::max(puts, gets) : puts;
  }
  // When a resident value has arrived, if it was got; else it was there at once.
  [[nodiscard]] double there(Id v, std::size_t i) const {
    if (!overlaps_) return 0;
    for (std::size_t k = i; k-- > 0;) {
      if (is_.resident(v, k)) continue;
      const Action& action = plan_.actions[k];
      return action.kind == Action::Kind::get && action.target == v ? transfer_ends_[k] : 0;
    }
    return 0;
  }
  [[nodiscard]] double idle(Id v, std::size_t i) const {
    double latest = 0;
    for (std::size_t k = 0; k < i; ++k) {
      const Action& action = plan_.actions[k];
      if (action.kind >= Action::Kind::put && action.target == v) latest = std::max(latest, transfer_ends_[k]);
    }
    return latest;
  }

  const Trace& trace_;
  const Plan& plan_;
  const Definitions& is_;
  const bool overlaps_;
  std::vector<double> ends_;           // by action: of the computation
  std::vector<double> transfer_ends_;  // by action; 0 if it is none
};

struct Found {
  Rule rule;
  std::optional<Id> value;
};

// The rule that action i breaks, the budget aside.
std::optional<Found> broken_by(const Trace& trace, const Plan& plan, const Definitions& is, std::size_t i) {
  const Action& action = plan.actions[i];
  const Id target = action.target;
  const bool names_moment = action.kind == Action::Kind::run || action.kind == Action::Kind::replay;
  if (target < 0 || target >= (names_moment ? trace.moment_count() : trace.value_count()))
    return Found{Rule::known, {}};
  const auto first_missing_input = [&]() -> std::optional<Found> {
    for (const Id v : trace.inputs(target)) {
      const auto& held = trace.values[v].held;
      const bool arrives =
          is.comes_from_outside(v) && held && held->first == target && action.kind == Action::Kind::run;
      if (!arrives && !is.resident(v, i)) return Found{Rule::resident, v};
    }
    return {};
  };
  if (action.kind == Action::Kind::run) {
    if (target != is.moments_run(i)) return Found{Rule::run_once, {}};
    for (Id v = 0; v < trace.value_count(); ++v) {
      const auto& held = trace.values[v].held;
      const bool starts_later = held && held->first == target && !is.comes_from_outside(v) && is.made_at(v) < target;
      if (starts_later && !is.resident(v, i)) return Found{Rule::resident, v};
    }
    return first_missing_input();
  }
  if (action.kind == Action::Kind::replay) {
    if (target >= is.moments_run(i)) return Found{Rule::has_run, {}};
    if (!trace.replayable(target)) return Found{Rule::replayable, {}};
    return first_missing_input();
  }
  if (action.kind == Action::Kind::drop) {
    if (!is.ours(target, i)) return Found{Rule::resident, target};
    return {};
  }
  if (action.tier < 0 || action.tier >= static_cast<Id>(plan.tiers.size())) return Found{Rule::known, target};
  const Tier& tier = plan.tiers[action.tier];
  const TierEntry* entry = tier.find(target);
  if (!entry) return Found{Rule::in_tier, target};
  const bool copy = is.has_copy(target, action.tier, i);
  if (action.kind == Action::Kind::put) {
    if (!is.resident(target, i)) return Found{Rule::resident, target};
    if (copy) return Found{Rule::in_tier, target};
    if (tier.capacity && is.tier_bytes(action.tier, i) + entry->bytes > *tier.capacity) {
      return Found{Rule::capacity, target};
    }
  } else {
    if (!copy) return Found{Rule::in_tier, target};
    if (is.resident(target, i)) return Found{Rule::not_resident, target};
  }
  return {};
}

}  // namespace

Simulation naive_simulate(const Trace& trace, const Plan& plan, bool check_budget) {
  const Definitions is(trace, plan);
  Times times(trace, plan, is);
  Simulation result;
  result.tier_peaks.assign(plan.tiers.size(), 0);
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    auto found = broken_by(trace, plan, is, i);
    const Bytes live = found ? 0 : is.live(i);
    const bool counts = plan.actions[i].kind != Action::Kind::drop;  // a drop only frees
    if (!found && check_budget && counts && live > plan.budget) found = Found{Rule::budget, {}};
    if (found) {
      result.broken = BrokenRule{found->rule, i, found->value, ""};
      return result;
    }
    result.live.push_back(live);
    if (counts && live > result.peak) result.peak = live, result.peak_action = i;
    times.pass(i);
    result.cost = times.now();
    for (Id t = 0; t < static_cast<Id>(plan.tiers.size()); ++t) {
      result.tier_peaks[t] = std::max(result.tier_peaks[t], is.tier_bytes(t, i + 1));
    }
  }
  if (is.moments_run(plan.actions.size()) < trace.moment_count()) {
    result.broken = BrokenRule{Rule::complete, plan.actions.size(), {}, ""};
  }
  return result;
}

}  // namespace reprise::testing
