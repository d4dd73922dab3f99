#include "plan/early_transfers.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/timeline.h"

namespace reprise::internal {
namespace {

// Times what a transfer takes: what is measured varies, and others of the tier may come in between.
constexpr double enough = 1.5;

constexpr std::size_t nowhere_yet = std::numeric_limits<std::size_t>::max();

// Positions are in the actions of the plan as it was made: what is moved comes right before the action there.
class EarlyTransfers {
 public:
  EarlyTransfers(const Trace& trace, const Plan& plan, const Simulation& simulation)
      : trace_(trace),
        plan_(plan),
        peak_(simulation.peak),
        live_(simulation.live),
        clock_(plan.actions.size() + 1, 0),
        came_(plan.actions.size(), 0),
        goes_(plan.actions.size(), nowhere_yet),
        moved_to_(plan.actions.size()),
        dropped_at_(trace.values.size(), 0) {
    for (std::size_t i = 0; i < plan.actions.size(); ++i) {
      moved_to_[i] = i;
      clock_[i + 1] = clock_[i] + cost(plan.actions[i]);
    }
    find_neighbours();
    find_bytes_in_tiers();
  }

  Plan run(bool puts, bool gets) {
    if (puts) {
      advance_puts();
      delay_drops();
    }
    if (gets) advance_gets();
    return gathered();
  }

 private:
  using Kind = Action::Kind;

  [[nodiscard]] const Action& action(std::size_t i) const { return plan_.actions[i]; }
  [[nodiscard]] const TierEntry& entry(std::size_t i) const {
    return *plan_.tiers[action(i).tier].find(action(i).target);
  }
  [[nodiscard]] bool overlaps(std::size_t i, Kind kind) const {
    if (action(i).kind != kind) return false;
    return (kind == Kind::put ? entry(i).put_time : entry(i).get_time) > 0;
  }
  [[nodiscard]] double cost(const Action& action) const {
    switch (action.kind) {
      case Kind::run:
      case Kind::replay: return trace_.cost(action.target);
      case Kind::put: return plan_.tiers[action.tier].find(action.target)->put_cost;
      case Kind::get: return plan_.tiers[action.tier].find(action.target)->get_cost;
      case Kind::drop: break;
    }
    return 0;
  }
  [[nodiscard]] Bytes bytes(std::size_t i) const { return trace_.values[action(i).target].bytes; }
  [[nodiscard]] bool holds(Id moment, Id value) const {
    const auto& held = trace_.values[value].held;
    return held && held->first <= moment && moment <= held->last;
  }

  // Returns whether what happens to the value here must stay on this side of what happens to it elsewhere.
  [[nodiscard]] bool concerns(std::size_t i, Id value) const {
    const Action& here = action(i);
    if (here.kind != Kind::run && here.kind != Kind::replay) return here.target == value;
    if (here.kind == Kind::run && holds(here.target, value)) return true;
    const auto& in = trace_.inputs(here.target);
    const auto& out = trace_.outputs(here.target);
    return std::find(in.begin(), in.end(), value) != in.end() || std::find(out.begin(), out.end(), value) != out.end();
  }
  [[nodiscard]] bool has_room(std::size_t i, Bytes bytes) const {
    return action(i).kind == Kind::drop || live_[i] + bytes <= peak_;
  }

  // For puts: since when the value is there, ours, and not in the tier. For puts and gets: where it goes, or is needed,
  // next.
  void find_neighbours() {
    const Timeline timeline(trace_);
    std::vector<std::size_t> came(trace_.values.size(), 0);
    for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
      const Action& here = action(i);
      if (here.kind == Kind::put) came_[i] = came[here.target];
      if (here.kind == Kind::run || here.kind == Kind::replay) {
        for (const Id v : trace_.outputs(here.target)) came[v] = i + 1;
      } else {
        came[here.target] = i + 1;
      }
      if (here.kind != Kind::run) continue;
      for (const Id v : timeline.hold_starts(here.target)) {
        if (timeline.made_at(v) == nowhere) came[v] = i + 1;
      }
      for (const Id v : timeline.hold_ends(here.target)) came[v] = i + 1;  // only then a put is not waited for
    }
    std::vector<std::size_t> drop(trace_.values.size(), nowhere_yet), use(trace_.values.size(), nowhere_yet);
    for (std::size_t i = plan_.actions.size(); i-- > 0;) {
      const Action& here = action(i);
      if (here.kind == Kind::drop) drop[here.target] = i;
      if (here.kind == Kind::put) goes_[i] = drop[here.target];
      if (here.kind == Kind::get) goes_[i] = use[here.target];
      if (here.kind == Kind::run || here.kind == Kind::replay) {
        for (const Id v : trace_.inputs(here.target)) use[v] = i;
      } else if (here.kind != Kind::get) {
        use[here.target] = i;
      }
    }
  }
  void find_bytes_in_tiers() {
    const auto& tiers = plan_.tiers;
    if (std::none_of(tiers.begin(), tiers.end(), [](const Tier& tier) { return tier.capacity.has_value(); })) return;
    const Simulation simulation =
        simulate(trace_, plan_, {.record_live = false, .check_budget = false, .record_residences = true});
    std::vector<std::vector<Bytes>> changes(plan_.tiers.size());
    for (std::size_t t = 0; t < plan_.tiers.size(); ++t) {
      if (plan_.tiers[t].capacity) changes[t].assign(plan_.actions.size() + 1, 0);
    }
    for (const Residence& stay : simulation.residences) {
      if (stay.origin != Residence::Origin::put || changes[stay.tier].empty()) continue;
      const Bytes bytes = plan_.tiers[stay.tier].find(stay.value)->bytes;
      changes[stay.tier][stay.begin] += bytes;
      changes[stay.tier][stay.end] -= bytes;
    }
    for (auto& change : changes) {
      for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
    }
    in_limited_ = std::move(changes);
  }

  // Backwards, each in time for the one after it.
  void advance_puts() {
    std::vector<double> next(plan_.tiers.size(), std::numeric_limits<double>::infinity());
    for (std::size_t i = plan_.actions.size(); i-- > 0;) {
      if (!overlaps(i, Kind::put)) continue;
      double& begin_of_next = next[action(i).tier];
      const double until = std::min(begin_of_next, goes_[i] == nowhere_yet ? clock_.back() : clock_[goes_[i]]);
      const double wanted = until - enough * entry(i).put_time;
      std::size_t at = i;
      while (at > came_[i] && clock_[at] > wanted && has_room_in_tier(i, at - 1)) --at;
      for (std::size_t k = at; k < i; ++k) add_in_tier(i, k);
      moved_to_[i] = at;
      begin_of_next = std::max(wanted, clock_[at]);
    }
  }
  [[nodiscard]] bool has_room_in_tier(std::size_t put, std::size_t at) const {
    const Tier& tier = plan_.tiers[action(put).tier];
    return !tier.capacity || in_limited_[action(put).tier][at] + entry(put).bytes <= *tier.capacity;
  }
  void add_in_tier(std::size_t put, std::size_t at) {
    if (plan_.tiers[action(put).tier].capacity) in_limited_[action(put).tier][at] += entry(put).bytes;
  }

  // Forwards, as the tiers come to them.
  void delay_drops() {
    std::vector<double> end(plan_.tiers.size(), 0);
    for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
      if (!overlaps(i, Kind::put)) continue;
      double& free = end[action(i).tier];
      const double begin = std::max(free, clock_[moved_to_[i]]);
      free = begin + entry(i).put_time;
      if (goes_[i] != nowhere_yet) delay_drop(goes_[i], begin + enough * entry(i).put_time);
    }
  }
  void delay_drop(std::size_t drop, double until) {
    const Id value = action(drop).target;
    std::size_t at = drop + 1;
    while (at < plan_.actions.size() && clock_[at] < until && !concerns(at, value) && has_room(at, bytes(drop))) ++at;
    if (at == drop + 1 || moved_to_[drop] != drop) return;
    for (std::size_t i = drop + 1; i < at; ++i) live_[i] += bytes(drop);
    moved_to_[drop] = at;
    dropped_at_[value] = at;
  }

  // Backwards again, each in time for its value and for the one after it.
  void advance_gets() {
    std::vector<double> next(plan_.tiers.size(), std::numeric_limits<double>::infinity());
    for (std::size_t i = plan_.actions.size(); i-- > 0;) {
      if (!overlaps(i, Kind::get)) continue;
      double& begin_of_next = next[action(i).tier];
      const double until = std::min(begin_of_next, goes_[i] == nowhere_yet ? clock_.back() : clock_[goes_[i]]);
      const double wanted = until - enough * entry(i).get_time;
      const std::size_t at = place_of_get(i, wanted);
      for (std::size_t k = at; k < i; ++k) live_[k] += bytes(i);
      moved_to_[i] = at;
      begin_of_next = std::max(wanted, clock_[at]);
    }
  }
  [[nodiscard]] std::size_t place_of_get(std::size_t get, double wanted) const {
    const Id value = action(get).target;
    std::size_t at = get;
    while (at > 0 && clock_[at] > wanted && at != dropped_at_[value] && !concerns(at - 1, value) &&
           has_room(at - 1, bytes(get))) {
      --at;
    }
    while (at < get && action(at).kind == Kind::drop) ++at;  // what goes there makes room for it
    return at;
  }

  // What comes to one place: first what goes, then what is put, then what is got.
  [[nodiscard]] Plan gathered() const {
    std::vector<std::vector<Action>> before(plan_.actions.size() + 1);
    for (const Kind kind : {Kind::drop, Kind::put, Kind::get}) {
      for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
        if (moved_to_[i] != i && action(i).kind == kind) before[moved_to_[i]].push_back(action(i));
      }
    }
    Plan plan{plan_.budget, plan_.tiers, {}};
    plan.actions.reserve(plan_.actions.size());
    for (std::size_t i = 0; i <= plan_.actions.size(); ++i) {
      plan.actions.insert(plan.actions.end(), before[i].begin(), before[i].end());
      if (i < plan_.actions.size() && moved_to_[i] == i) plan.actions.push_back(action(i));
    }
    return plan;
  }

  const Trace& trace_;
  const Plan& plan_;
  const Bytes peak_;
  std::vector<Bytes> live_;                     // by action, with what was moved so far
  std::vector<double> clock_;                   // by action: when the computation comes to it, if it never waits
  std::vector<std::size_t> came_, goes_;        // by action, see find_neighbours
  std::vector<std::size_t> moved_to_;           // by action: its place, at first its own
  std::vector<std::size_t> dropped_at_;         // by value: where its last delayed drop stands now
  std::vector<std::vector<Bytes>> in_limited_;  // by tier with a capacity, by action
};

}  // namespace

bool any_overlaps(const std::vector<Tier>& tiers) {
  return std::any_of(tiers.begin(), tiers.end(), [](const Tier& tier) { return tier.overlaps(); });
}

Plan with_early_transfers(const Trace& trace, const Plan& plan) {
  const auto overlaps = [&](const Action& action) {
    return action.kind == Action::Kind::put && plan.tiers[action.tier].overlaps();
  };
  if (std::none_of(plan.actions.begin(), plan.actions.end(), overlaps)) return plan;
  const Simulation before = simulate(trace, plan, {.check_budget = false});
  Plan best = plan;
  double least = before.cost;
  for (const auto& [puts, gets] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
    Plan moved = EarlyTransfers(trace, plan, before).run(puts, gets);
    const Simulation after = simulate(trace, moved, {.record_live = false, .check_budget = false});
    const bool better = best == plan ? after.cost <= least : after.cost < least;
    if (!after.valid() || after.peak > before.peak || !better) continue;
    least = after.cost;
    best = std::move(moved);
  }
  return best;
}

}  // namespace reprise::internal
