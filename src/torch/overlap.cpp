#include "torch/overlap.h"

#include <algorithm>
#include <vector>

#include "reprise/simulate/simulate.h"

namespace reprise::internal {
namespace {

constexpr double enough = 2;  // times what a transfer takes

class Overlap {
 public:
  Overlap(const Trace& trace, const Plan& plan, Id tier, const Simulation& simulation)
      : trace_(trace),
        plan_(plan),
        tier_(tier),
        peak_(simulation.peak),
        live_(simulation.live),
        put_before_(plan.actions.size() + 1),
        moved_(plan.actions.size(), false),
        dropped_at_(trace.values.size(), 0) {}

  Plan run() {
    const auto count = plan_.actions.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (transfers(i, Action::Kind::put)) delay_drop_after(i);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (transfers(i, Action::Kind::get)) advance_get(i);
    }
    Plan plan{plan_.budget, plan_.tiers, {}};
    plan.actions.reserve(count);
    for (std::size_t i = 0; i <= count; ++i) {
      plan.actions.insert(plan.actions.end(), put_before_[i].begin(), put_before_[i].end());
      if (i < count && !moved_[i]) plan.actions.push_back(plan_.actions[i]);
    }
    return plan;
  }

 private:
  [[nodiscard]] bool transfers(std::size_t i, Action::Kind kind) const {
    return plan_.actions[i].kind == kind && plan_.actions[i].tier == tier_;
  }
  // Whether what happens to the value here must stay on this side of what happens to it elsewhere.
  [[nodiscard]] bool concerns(const Action& action, Id value) const {
    switch (action.kind) {
      case Action::Kind::drop:
      case Action::Kind::put:
      case Action::Kind::get: return action.target == value;
      case Action::Kind::run:
      case Action::Kind::replay: {
        const auto& held = trace_.values[value].held;
        if (action.kind == Action::Kind::run && held && held->first <= action.target && action.target <= held->last) {
          return true;
        }
        const auto& in = trace_.inputs(action.target);
        const auto& out = trace_.outputs(action.target);
        return std::find(in.begin(), in.end(), value) != in.end() ||
               std::find(out.begin(), out.end(), value) != out.end();
      }
    }
    return true;
  }
  [[nodiscard]] bool has_room(std::size_t i, Bytes bytes) const {
    return plan_.actions[i].kind == Action::Kind::drop || live_[i] + bytes <= peak_;
  }
  // Time that a transfer can use while the action takes place; other transfers take time of their own.
  [[nodiscard]] double time_beside(std::size_t i) const {
    const Action& action = plan_.actions[i];
    switch (action.kind) {
      case Action::Kind::run:
      case Action::Kind::replay: return trace_.cost(action.target);
      case Action::Kind::put: return -entry(action).put_cost;
      case Action::Kind::get: return -entry(action).get_cost;
      case Action::Kind::drop: break;
    }
    return 0;
  }
  [[nodiscard]] const TierEntry& entry(const Action& action) const {
    return *plan_.tiers[action.tier].find(action.target);
  }

  void delay_drop_after(std::size_t put) {
    const Id value = plan_.actions[put].target;
    const auto count = plan_.actions.size();
    std::size_t drop = put + 1;
    while (drop < count && !concerns(plan_.actions[drop], value)) ++drop;
    if (drop == count || plan_.actions[drop] != Action::drop(value)) return;
    double wanted = enough * entry(plan_.actions[put]).put_cost;
    for (std::size_t i = put + 1; i < drop; ++i) wanted -= time_beside(i);
    const Bytes bytes = trace_.values[value].bytes;
    std::size_t at = drop + 1;
    for (; at < count && wanted > 0; ++at) {
      if (concerns(plan_.actions[at], value) || !has_room(at, bytes)) break;
      wanted -= time_beside(at);
    }
    if (at == drop + 1) return;
    for (std::size_t i = drop + 1; i < at; ++i) live_[i] += bytes;
    moved_[drop] = true;
    put_before_[at].push_back(Action::drop(value));
    dropped_at_[value] = at;
  }

  void advance_get(std::size_t get) {
    const Id value = plan_.actions[get].target;
    double wanted = enough * entry(plan_.actions[get]).get_cost;
    const Bytes bytes = trace_.values[value].bytes;
    std::size_t at = get;
    while (at > 0 && wanted > 0) {
      const std::size_t before = at - 1;
      if (at == dropped_at_[value] || concerns(plan_.actions[before], value) || !has_room(before, bytes)) break;
      wanted -= time_beside(before);
      at = before;
    }
    if (at == get) return;
    for (std::size_t i = at; i < get; ++i) live_[i] += bytes;
    moved_[get] = true;
    put_before_[at].push_back(plan_.actions[get]);
  }

  const Trace& trace_;
  const Plan& plan_;
  const Id tier_;
  const Bytes peak_;
  std::vector<Bytes> live_;  // by action, with what was moved so far
  std::vector<std::vector<Action>> put_before_;
  std::vector<bool> moved_;
  std::vector<std::size_t> dropped_at_;  // by value: where its last delayed drop stands now
};

}  // namespace

Plan with_overlap(const Trace& trace, const Plan& plan, Id tier) {
  const auto uses_it = [&](const Action& action) { return action.kind == Action::Kind::put && action.tier == tier; };
  if (std::none_of(plan.actions.begin(), plan.actions.end(), uses_it)) return plan;
  const Simulation before = simulate(trace, plan);
  Plan overlapped = Overlap(trace, plan, tier, before).run();
  const Simulation after = simulate(trace, overlapped, {.record_live = false});
  return after.valid() && after.peak <= before.peak ? overlapped : plan;
}

}  // namespace reprise::internal
