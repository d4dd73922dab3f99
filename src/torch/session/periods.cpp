#include "torch/session/periods.h"

#include <algorithm>

#include "torch/memory/meter.h"
#include "torch/memory/place.h"
#include "torch/values/open_steps.h"

namespace reprise::internal {
namespace {

Bytes largest_packed(const Observations& seen) {
  Bytes largest = 0;
  for (const auto& form : seen.forms) {
    if (form) largest = std::max(largest, meter::counted(form->bytes()));
  }
  return largest;
}

}  // namespace

bool Periods::wants_recording() const {
  return known_.all().empty() || known_.all().back()->given || !known_.all().back()->costs_settled();
}

// It is memory beside the budget.
Bytes Periods::most_bytes() const {
  constexpr Bytes without_budget = 8 << 20, least = 4 << 20, part = 32;
  return rules_->budget() == no_limit ? without_budget : least + rules_->budget() / part;
}

void Periods::begin_step() {
  known_.keep_within(most_bytes());
  first_in_step_ = true;
  longest_.reset();
  ended_ = planned_ = 0;
  seconds_of_device_ = 0;
}

void Periods::end_step() {
  announced_.clear();
  if (ended_ > 0) longest_of_last_step_ = longest_;
}

std::shared_ptr<Period> Periods::longest() const {
  const auto longest = longest_.lock();
  return longest ? longest : longest_of_last_step_.lock();
}

// ---- one begins ----------------------------------------------------------------------------------------------------

std::shared_ptr<Period> Periods::guess() const {
  std::shared_ptr<Period> guess = first_in_step_ ? first_.lock() : nullptr;
  if (const auto last = last_.lock(); !first_in_step_ && last) guess = last->successor.lock();
  if (!guess && !known_.all().empty()) guess = known_.all().back();
  return guess;
}

std::vector<std::shared_ptr<LateCosts>> Periods::late_costs_of_next() const {
  const auto next = guess();
  return next ? next->late : std::vector<std::shared_ptr<LateCosts>>();
}

const AnnouncedPlan* Periods::announced_after(int ended) const {
  const auto found = std::find_if(announced_.begin(), announced_.end(),
                                  [&](const AnnouncedPlan& plan) { return plan.place_in_step == ended; });
  return found == announced_.end() ? nullptr : &*found;
}

std::shared_ptr<Recording> Periods::begin() {
  if (const AnnouncedPlan* const announced = announced_after(ended_)) {
    auto recording = begin(nullptr);
    recording->follow_plan(announced->script);
    return recording;
  }
  std::shared_ptr<Period> followed = guess();
  if (followed && followed->record_anew) {
    followed->record_anew = false;
    followed.reset();
  }
  return begin(std::move(followed));
}

std::shared_ptr<Recording> Periods::begin(std::shared_ptr<Period> followed) {
  rules_->smallest(smallest());
  if (followed) followed->take_late_costs();
  auto recording = std::make_shared<Recording>(rules_, std::move(followed), first_in_step_);
  if (const auto& period = recording->period(); period && rules_->packs()) {
    const bool planned = recording->plan() && rules_->place().is_cpu();
    OpenSteps::of_process().reserve(Places::of_process().cpu(), planned ? 0 : largest_packed(period->seen));
  }
  return recording;
}

std::shared_ptr<Recording> Periods::begin_in_the_middle() {
  auto recording = begin(nullptr);
  recording->journal().give_up("its first operators were not seen");
  return recording;
}

// ---- one has ended -------------------------------------------------------------------------------------------------

std::shared_ptr<Period> Periods::end(Recording& r) {
  ++ended_;
  if (r.course().following() && r.period()) {
    learn_from(r);
  } else if (r.journal().observing() && r.journal().plannable() && !r.journal().seen().names.empty()) {
    remember(r);
  }
  const auto& period = r.period();
  if (period && first_in_step_) first_ = period;
  if (const auto last = last_.lock(); period && last && !first_in_step_) last->successor = period;
  first_in_step_ = false;
  last_ = period;
  if (!period) return nullptr;
  if (rules_->accelerator()) seconds_of_device_ += period->seconds() + r.rebuilding();
  const auto longest = longest_.lock();
  if (!longest || longest->recipes->operators.size() < period->recipes->operators.size()) {
    longest_ = period;
    see_longest(r);
  }
  return period;
}

void Periods::see_longest(Recording& r) {
  const auto& period = r.period();
  LongestPeriod& seen = seen_of_longest_;
  const auto& measured = r.journal().other();
  const auto& other = measured.size() == period->other.size() ? measured : period->other;
  if (seen.period.lock() != period || seen.other != other) {
    seen.period = period;
    seen.other = other;
    seen.kept_peak.reset();
  }
  seen.script = r.plan() ? r.plan()->script() : r.at_ease() ? period->script : nullptr;
}

// A period that nobody has seen before.
void Periods::remember(Recording& r) {
  auto period = std::make_shared<Period>();
  period->recipes = r.course().shared();
  period->recipes->shrink();
  period->seen = r.journal().take_observations();
  period->seen.shrink();
  period->costs = r.journal().costs();
  period->other = r.journal().other();
  if (r.journal().late()) {
    period->late.push_back(r.journal().take_late_costs());
  } else {
    period->measured = 1;
  }
  period->place_in_step = ended_ - 1;
  known_.add(period, most_bytes());
  planning_.went_through(*period, r.rebuilding(), r.plan() != nullptr, rules_->budget());
  if (const AnnouncedPlan* const announced = announced_after(ended_ - 1); announced && r.plan()) {
    ++planned_;
    period->use(announced->script, announced->plan);
    period->budget = announced->script->budget;
    rules_->advice().learn(*period);
  }
  rules_->counters().trace_is_new();
  r.remembered_as(std::move(period));
}

void Periods::learn_from(Recording& r) {
  Period& period = *r.period();
  if (!r.course().complete()) {  // it ended before its time
    rules_->counters().diverged("the step ended after operator " + std::to_string(r.course().next()) + " of " +
                                std::to_string(r.course().recipes().operators.size()));
    return;
  }
  known_.met_again(period);
  if (r.journal().measuring()) {  // what the host has measured; an accelerator tells the rest later
    period.costs = r.journal().costs();
    for (ObservedMoment& moment : period.seen.moments) {
      if (moment.op != no_operator) moment.cost = period.costs[moment.op];
    }
    if (r.journal().late()) {
      period.late.push_back(r.journal().take_late_costs());
    } else {
      ++period.measured;
    }
  }
  const bool planned = r.plan() || r.at_ease();
  planning_.went_through(period, r.rebuilding(), planned, rules_->budget());
  if (planned) ++planned_;
  period.see_other(r.journal().other());
}

SmallestBudget Periods::smallest() const {
  for (auto known = known_.all().rbegin(); known != known_.all().rend(); ++known) {
    const Period& period = **known;
    if (period.infeasible) return {period.smallest_feasible, period.floor, period.floor_set_by};
  }
  return {};
}

}  // namespace reprise::internal
