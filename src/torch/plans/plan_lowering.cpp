#include "torch/plans/plan_lowering.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {
namespace {

using Step = ExecutablePlan::Step;

// Returns the tier of this name in a plan, which may be another program's; -1 if there is none.
Id tier_of(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.tiers, name, &Tier::name);
  return found == plan.tiers.end() ? -1 : static_cast<Id>(found - plan.tiers.begin());
}

// Drops that come right after a moment are done right after it; everything else, right before the next.
class PlanLowering {
 public:
  PlanLowering(const RecordedPass& pass, const PassTrace& traced, const Plan& plan)
      : profile_(pass.profile),
        traced_(traced),
        plan_(plan),
        packed_(tier_of(plan, PassTrace::packed)),
        below_(tier_of(plan, traced.below)),
        moments_(traced.trace.moment_count()),
        room_(static_cast<std::size_t>(moments_), plan.budget),
        first_drop_(pass.recipes->values.size(), moments_),
        last_drop_(first_drop_.size(), no_step),
        last_unpack_(first_drop_.size(), no_step) {
    lowered_.owned.assign(first_drop_.size(), 0);
    lowered_.last_drop.assign(first_drop_.size(), -1);
    lowered_.before.assign(room_.size() + 1, 0);
    lowered_.after.assign(room_.size() + 1, 0);
    lowered_.budget = plan.budget;
    lowered_.most_other = pass.profile.other;
    for (const ProfiledMoment& moment : pass.profile.moments) lowered_.events.push_back(moment.name);
  }

  [[nodiscard]] ExecutablePlan lower(const Simulation& simulation) {
    for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
      const Action& action = plan_.actions[i];
      if (action.kind != Action::Kind::drop) see_live(simulation.live[i]);
      lower(action);
    }
    finish();
    lowered_.peak = simulation.peak;
    lowered_.plain_cost = traced_.trace.total_cost();
    lowered_.added_cost = simulation.cost - lowered_.plain_cost;
    return std::move(lowered_);
  }

 private:
  static constexpr std::size_t no_step = static_cast<std::size_t>(-1);

  void see_live(Bytes);
  void lower(const Action&);
  void run(Id moment);
  void replay(Id op);
  void drop(Id value);
  void put(const Action&);
  void get(const Action&);
  void add_before_next(Step);
  void begin_before_next();
  void end_copy(Id value);
  void finish();

  const PassProfile& profile_;
  const PassTrace& traced_;
  const Plan& plan_;
  const Id packed_, below_;  // tiers
  const Id moments_;
  ExecutablePlan lowered_;
  Id running_ = -1;          // the moment that ran last
  bool right_after_ = true;  // only drops since then
  std::vector<Bytes>
      room_;  // by moment: how far live bytes stay below the budget, from the moment before until it ends
  std::vector<Id> first_drop_;  // by value: the moment after which it is dropped for the first time
  std::vector<std::size_t> last_drop_, last_unpack_;  // by value: its index among the steps
};

// The bytes during an action, which is no drop, are those of the moment to come until it has begun.
void PlanLowering::see_live(Bytes bytes) {
  Bytes& room = room_[std::min(running_ + 1, moments_ - 1)];
  room = std::min(room, lowered_.budget - bytes);
}

void PlanLowering::lower(const Action& action) {
  switch (action.kind) {
    case Action::Kind::run: return run(action.target);
    case Action::Kind::replay: return replay(*traced_.trace.moments[action.target].runs);
    case Action::Kind::drop: return drop(traced_.recorded[action.target]);
    case Action::Kind::put: return put(action);
    case Action::Kind::get: return get(action);
  }
}

void PlanLowering::begin_before_next() {
  if (!std::exchange(right_after_, false) || running_ < 0) return;
  lowered_.before[running_ + 1] = static_cast<std::uint32_t>(lowered_.steps.size());
}

void PlanLowering::add_before_next(Step step) {
  begin_before_next();
  lowered_.steps.push_back(step);
}

void PlanLowering::run(Id moment) {
  begin_before_next();
  running_ = moment;
  lowered_.after[moment] = static_cast<std::uint32_t>(lowered_.steps.size());
  right_after_ = true;
}

void PlanLowering::replay(Id op) {
  add_before_next({Step::Kind::replay, static_cast<Id>(lowered_.replays.size())});
  ExecutablePlan::Replay& replay = lowered_.replays.emplace_back();
  replay.operators = traced_.operators[op];
  for (const Id value : traced_.trace.operators[op].outputs) replay.outputs.push_back(traced_.recorded[value]);
}

void PlanLowering::drop(Id value) {
  last_drop_[value] = lowered_.steps.size();
  first_drop_[value] = std::min(first_drop_[value], running_);
  lowered_.last_drop[value] = running_;
  lowered_.steps.push_back({Step::Kind::drop, value});
}

void PlanLowering::put(const Action& action) {
  const Id value = traced_.recorded[action.target];
  if (action.tier == packed_) {
    end_copy(value);
    add_before_next({Step::Kind::pack, static_cast<Id>(lowered_.packings.size())});
    lowered_.packings.push_back({value, *profile_.form_of(value)});
  }
  if (action.tier != below_) return;
  add_before_next({Step::Kind::put, value});
  const TierEntry& entry = *plan_.tiers[below_].find(action.target);
  ++lowered_.below.puts;
  lowered_.below.bytes += entry.bytes;
  lowered_.below.both_ways += entry.put_cost + entry.get_cost + entry.put_time + entry.get_time;
}

void PlanLowering::get(const Action& action) {
  const Id value = traced_.recorded[action.target];
  if (action.tier == packed_) {
    last_unpack_[value] = lowered_.steps.size();
    add_before_next({Step::Kind::unpack, value});
  }
  if (action.tier == below_) add_before_next({Step::Kind::get, value});
}

// The packed copy of a value goes with the last unpacking before this.
void PlanLowering::end_copy(Id value) {
  if (last_unpack_[value] != no_step) lowered_.steps[last_unpack_[value]].kind = Step::Kind::unpack_last;
}

void PlanLowering::finish() {
  begin_before_next();
  lowered_.after[moments_] = static_cast<std::uint32_t>(lowered_.steps.size());
  for (std::size_t v = 0; v < traced_.recorded.size(); ++v) {
    const Id value = traced_.recorded[v];
    end_copy(value);
    if (last_drop_[value] != no_step) lowered_.steps[last_drop_[value]].kind = Step::Kind::end;
    if (lowered_.last_drop[value] < 0) lowered_.last_drop[value] = moments_;  // taken over, or never dropped
    // A value that the plan has for longer than the program is ours from the start.
    lowered_.owned[value] = first_drop_[value] > traced_.released[v];
  }
  for (std::size_t m = 0; m < lowered_.most_other.size(); ++m) {
    lowered_.most_other[m].between += room_[m];
    lowered_.most_other[m].within += room_[m];
  }
}

}  // namespace

std::shared_ptr<const ExecutablePlan> lower_plan(const RecordedPass& pass, const PassTrace& traced, const Plan& plan,
                                                 const Simulation& simulation, double gap) {
  auto lowered = std::make_shared<ExecutablePlan>(PlanLowering(pass, traced, plan).lower(simulation));
  lowered->gap = gap;
  return lowered;
}

}  // namespace reprise::internal
