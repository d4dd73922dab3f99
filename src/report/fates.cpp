#include "report/fates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "report/idle.h"
#include "report/layers.h"
#include "report/number_pattern.h"
#include "report/tier_words.h"
#include "report/words.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

// The history of one value, from the residences of a simulation.
struct ValueHistory {
  double byte_cost = 0;               // copies in tiers that count in the budget included
  std::size_t replays = 0, gets = 0;  // that brought it back
  std::optional<Id> tier;             // it was in this one; if in several, in one that does not count in the budget
  double recompute_cost = 0;  // of replays, shared by bytes with what else they brought back, and of puts and gets
  Bytes at_peak = 0;          // bytes live at the action in question
};

// Returns the action that runs this moment.
std::size_t action_of(const Plan& plan, Id moment) {
  const auto found = std::find(plan.actions.begin(), plan.actions.end(), Action::run(moment));
  return static_cast<std::size_t>(found - plan.actions.begin());
}

std::vector<ValueHistory> histories_of(const Trace& trace, const Plan& plan, const Simulation& simulation,
                                       std::size_t peak) {
  const std::vector<double> costs = costs_before(trace, plan);
  std::vector<ValueHistory> histories(trace.values.size());
  std::vector<Bytes> brought(plan.actions.size(), 0);  // by action: what a replay brought back
  for (const Residence& residence : simulation.residences) {
    if (residence.origin == Residence::Origin::replay) brought[residence.begin] += trace.values[residence.value].bytes;
  }
  for (const Residence& residence : simulation.residences) {
    ValueHistory& history = histories[residence.value];
    Bytes bytes = trace.values[residence.value].bytes;
    if (residence.origin == Residence::Origin::replay) {
      ++history.replays;
      const double all = static_cast<double>(brought[residence.begin]);
      const double cost = trace.cost(plan.actions[residence.begin].target);
      if (all > 0) history.recompute_cost += cost * static_cast<double>(bytes) / all;
    }
    if (residence.origin == Residence::Origin::get) ++history.gets;
    if (residence.origin == Residence::Origin::put) {
      const Tier& tier = plan.tiers[residence.tier];
      bytes = tier.in_budget ? tier.find(residence.value)->bytes : 0;
      if (!history.tier || plan.tiers[*history.tier].in_budget) history.tier = residence.tier;
    }
    history.byte_cost += static_cast<double>(bytes) * (costs[residence.end] - costs[residence.begin]);
    if (residence.begin <= peak && peak < residence.end) history.at_peak += bytes;
  }
  for (const Action& action : plan.actions) {
    if (action.kind != Action::Kind::put && action.kind != Action::Kind::get) continue;
    const TierEntry& entry = *plan.tiers[action.tier].find(action.target);
    histories[action.target].recompute_cost += action.kind == Action::Kind::put ? entry.put_cost : entry.get_cost;
  }
  return histories;
}

class Collector {
 public:
  Collector(const Trace& trace, const Plan& everything, const Simulation& before, const Plan& plan,
            const Simulation& after)
      : trace_(trace),
        tiers_(plan.tiers),
        timeline_(trace),
        cost_before_(cost_before_moments(trace)),
        needed_(trace.values.size(), 0) {
    // Where keeping everything peaks, a plan may be anywhere; what counts is the same moment.
    const std::size_t peak = before.peak_action;
    const bool runs = peak < everything.actions.size() && everything.actions[peak].kind == Action::Kind::run;
    before_ = histories_of(trace, everything, before, peak);
    after_ = histories_of(trace, plan, after, runs ? action_of(plan, everything.actions[peak].target) : peak);
    note_needs_at_peak(plan, after.peak_action);
    count_replays(plan);
  }

  Fates collect() {
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (trace_.values[v].bytes > 0) add(v);
    }
    for (auto& [key, group] : groups_) {
      group.first.name = group.second.name.text();
      group.first.module = group.second.module.text();
      fates_.values.push_back(std::move(group.first));
    }
    std::stable_sort(fates_.values.begin(), fates_.values.end(),
                     [](const auto& a, const auto& b) { return a.byte_cost > b.byte_cost; });
    fates_.by_operator = take(operators_);
    fates_.by_module = take(modules_);
    return std::move(fates_);
  }

 private:
  struct Names {
    NumberPattern name, module;
  };
  using Named = std::map<std::string, std::pair<NameGroup, NumberPattern>>;

  void note_needs_at_peak(const Plan& plan, std::size_t peak) {
    if (peak >= plan.actions.size()) return;
    const Action& action = plan.actions[peak];
    if (action.kind != Action::Kind::run && action.kind != Action::Kind::replay) {
      needed_[action.target] = 1;
      return;
    }
    for (const Id v : trace_.inputs(action.target)) needed_[v] = 1;
    for (const Id v : trace_.outputs(action.target)) needed_[v] = 1;
  }

  void count_replays(const Plan& plan) {
    std::vector<std::size_t> replays(trace_.operators.size(), 0);
    for (const Action& action : plan.actions) {
      if (action.kind == Action::Kind::replay) ++replays[*trace_.moments[action.target].runs];
    }
    for (std::size_t i = 0; i < replays.size(); ++i) {
      const Operator& op = trace_.operators[i];
      const auto count = [&](NameGroup& group) {
        group.replays += replays[i];
        group.replay_cost += static_cast<double>(replays[i]) * op.cost;
      };
      count(named(operators_, op.name));
      if (!op.module.empty()) count(named(modules_, op.module));
    }
  }

  static NameGroup& named(Named& groups, const std::string& name) {
    auto& [group, pattern] = groups[without_numbers(name)];
    pattern.add(name);
    return group;
  }

  void add(Id v) {
    const Value& value = trace_.values[v];
    const ValueHistory &before = before_[v], &after = after_[v];
    const Tier* const tier = after.gets > 0 ? &tiers_[*after.tier] : nullptr;
    const Fate fate = tier                ? (tier->in_budget ? Fate::packed : Fate::outside)
                      : after.replays > 0 ? Fate::evicted
                                          : Fate::kept;
    const Bytes freed = std::max<Bytes>(0, before.at_peak - after.at_peak);
    const Reason reason = fate == Fate::kept ? why_kept(v)
                          : freed > 0        ? Reason::frees_at_peak
                                             : Reason::frees_while_unused;
    const Operator* const maker = value.maker ? &trace_.operators[*value.maker] : nullptr;
    const std::string name = maker ? maker->name : "", module = maker ? maker->module : "";
    auto& [group, names] = groups_[{without_numbers(name), without_numbers(module), !maker, value.bytes, fate,
                                    tier ? tier->name : "", reason}];
    names.name.add(maker ? name : "from outside");
    names.module.add(module);
    ++group.values;
    group.bytes = value.bytes;
    group.byte_cost += before.byte_cost;
    group.byte_cost_after += after.byte_cost;
    group.fate = fate;
    if (tier) group.tier = Tier{tier->name, tier->capacity, tier->in_budget, {}, tier->duplex};
    group.reason = reason;
    group.replays += after.replays;
    group.gets += after.gets;
    group.recompute_cost += fate != Fate::kept ? after.recompute_cost : maker ? maker->cost : 0;
    group.freed_at_peak += freed;
    fates_.byte_cost += before.byte_cost;
    if (!maker) return;
    count_value(named(operators_, name), v);
    if (!module.empty()) count_value(named(modules_, module), v);
  }

  void count_value(NameGroup& group, Id v) {
    ++group.values;
    group.bytes += trace_.values[v].bytes;
    group.byte_cost += before_[v].byte_cost;
    group.byte_cost_after += after_[v].byte_cost;
  }

  Reason why_kept(Id v) const {
    const Value& value = trace_.values[v];
    if (!value.maker) return Reason::from_outside;
    if (timeline_.needed_at(v).empty()) return Reason::unneeded;
    if (!longest_idle(trace_, timeline_, cost_before_, v)) return Reason::in_use;
    if (!trace_.operators[*value.maker].replayable) return Reason::not_replayable;
    return needed_[v] ? Reason::needed_at_peak : Reason::not_worth_it;
  }

  static std::vector<NameGroup> take(Named& groups) {
    std::vector<NameGroup> list;
    for (auto& [key, group] : groups) {
      if (group.first.values == 0) continue;
      group.first.name = group.second.text();
      list.push_back(std::move(group.first));
    }
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.byte_cost > b.byte_cost; });
    return list;
  }

  const Trace& trace_;
  const std::vector<Tier>& tiers_;  // of the plan
  const Timeline timeline_;
  const std::vector<double> cost_before_;
  std::vector<ValueHistory> before_, after_;  // by value
  std::vector<char> needed_;                  // by value: at the plan's peak
  std::map<std::tuple<std::string, std::string, bool, Bytes, Fate, std::string, Reason>, std::pair<ValueGroup, Names>>
      groups_;
  Named operators_, modules_;
  Fates fates_;
};

}  // namespace

Fates fates_of(const Trace& trace, const Plan& everything, const Simulation& before, const Plan& plan,
               const Simulation& after) {
  return Collector(trace, everything, before, plan, after).collect();
}

std::string what_happens(const ValueGroup& group) {
  switch (group.fate) {
    case Fate::kept: return "kept";
    case Fate::packed:
    case Fate::outside:
      return where(*group.tier) + (group.replays > 0 ? ", and " + count(group.replays, "replay") : "");
    case Fate::evicted: return "evicted, " + count(group.replays, "replay");
  }
  return "";
}

std::string sentence(const Trace& trace, const ValueGroup& group) {
  const double step = trace.total_cost();
  const std::string cost = small_percent(step > 0 ? group.recompute_cost / step : 0) + " of the step";
  const std::string work = group.tier ? both_ways(*group.tier) : "recomputing";
  switch (group.reason) {
    case Reason::frees_at_peak:
      return fmt::format("{} costs {} and frees {} at the peak", work, cost, format_bytes(group.freed_at_peak));
    case Reason::frees_while_unused: return fmt::format("{} costs {} and makes room while it is unused", work, cost);
    case Reason::from_outside: return "it came from outside: no operator here can make it again";
    case Reason::not_replayable: return "its operator may not be replayed";
    case Reason::unneeded: return "not needed again, so it is dropped at once";
    case Reason::in_use: return "it is in use until its last need, or held by the program";
    case Reason::needed_at_peak: return "it is needed at the peak";
    case Reason::not_worth_it: return fmt::format("it could be evicted; recomputing would cost {} or more", cost);
  }
  return "";
}

}  // namespace reprise::internal
