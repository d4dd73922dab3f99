#include "support/random_plan.h"

#include <algorithm>

#include "reprise/simulate/simulate.h"

namespace reprise::testing {
namespace {

Action some_action(Random& random, const Trace& trace, const Plan& plan, Id next, double nonsense) {
  const Id moments = trace.moment_count(), values = trace.value_count(), tiers = static_cast<Id>(plan.tiers.size());
  if (random.chance(nonsense)) {  // anything, ids that do not exist included
    const auto kind = static_cast<Action::Kind>(random.below(5));
    return {kind, random.between(-1, std::max(moments, values)), random.between(-1, tiers)};
  }
  const auto choice = random.below(10);
  if (choice < 3 && next < moments) return Action::run(next);
  if (choice < 5 && next > 0) return Action::replay(random.between(0, next - 1));
  if (choice >= 7 && tiers > 0 && values > 0) {
    std::vector<Action> puts;
    for (const Action& action : plan.actions) {
      if (action.kind == Action::Kind::put) puts.push_back(action);
    }
    if (choice > 7 && !puts.empty()) {
      const Action& put = puts[random.below(puts.size())];
      return random.chance(0.5) ? Action::get(put.target, put.tier) : Action::drop(put.target);
    }
    return Action::put(random.between(0, values - 1), random.between(0, tiers - 1));
  }
  return values > 0 ? Action::drop(random.between(0, values - 1)) : Action::run(next);
}

}  // namespace

Plan random_plan(Random& random, const Trace& trace, double nonsense, const std::function<bool(const Plan&)>& allowed) {
  Plan plan;
  plan.tiers = trace.tiers;
  Id next = 0;
  for (int i = 0; i < 6 * trace.moment_count(); ++i) {
    plan.actions.push_back(some_action(random, trace, plan, next, nonsense));
    const bool fine = allowed(plan);
    if (!fine && !random.chance(nonsense)) {
      plan.actions.pop_back();
    } else if (!fine) {
      break;  // what follows is not reached
    } else if (plan.actions.back().kind == Action::Kind::run) {
      ++next;
    }
  }
  if (random.chance(0.9)) {
    for (; next < trace.moment_count(); ++next) plan.actions.push_back(Action::run(next));
  }
  return plan;
}

Plan random_valid_plan(Random& random, const Trace& trace) {
  const auto allowed = [&](const Plan& plan) {
    const Simulation result = simulate(trace, plan, {.record_live = false, .check_budget = false});
    return !result.broken || result.broken->rule == Rule::complete;
  };
  for (;;) {
    Plan plan = random_plan(random, trace, 0, allowed);
    const Simulation result = simulate(trace, plan, {.record_live = false, .check_budget = false});
    plan.budget = result.peak;
    if (result.valid()) return plan;
  }
}

}  // namespace reprise::testing
