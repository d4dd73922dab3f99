#include "torch/values/journal.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

void Journal::observe() {
  observing_ = measuring_ = measuring_other_ = true;
  (void)meter_.take_other_peak();
}

void Journal::measure(bool costs, bool other) {
  measuring_ = costs;
  measuring_other_ = other;
  if (measuring_other_) (void)meter_.take_other_peak();
}

void Journal::mark_unplannable() {
  observing_ = measuring_other_ = plannable_ = false;
}

void Journal::leave(std::size_t operators) {
  if (known_) own_.costs = std::exchange(known_, nullptr)->costs;
  own_.costs.resize(operators);
}

// What a node of backward was given goes right after the node has ended. By the time that values are recomputed for the
// next one, it is gone: what was there in between counts as if the node had had it.
void Journal::begin(ProfiledMoment moment) {
  in_event_ = moment.op == no_operator;
  const bool after_event = std::exchange(after_event_, in_event_);
  if (measuring_other_) {
    auto& other = own_.other;
    Bytes between = meter_.take_other_peak();
    if (after_event && other.size() == static_cast<std::size_t>(moment_) && moment_ > 0) {
      other.back().within = std::max(other.back().within, between);
      between = meter_.other();
    }
    other.push_back({between, 0});
  }
  if (in_event_) event_ = moment_;
  ++moment_;
  if (observing_) own_.moments.push_back(moment);
}

void Journal::end_event(float cost) {
  end_moment();
  if (observing_ && !own_.moments.empty()) own_.moments.back().event_cost = cost;
  in_event_ = false;
}

void Journal::end_moment() {
  if (measuring_other_ && !own_.other.empty()) own_.other.back().within = meter_.take_other_peak();
}

void Journal::end_operator() {
  if (measuring_other_) (void)meter_.take_other_peak();
}

void Journal::made(Id value) {
  if (observing_) watched_.push_back(value);
}

void Journal::needed(Id value) {
  if (!observing_ || event_ >= static_cast<Id>(own_.moments.size())) return;
  own_.needs.push_back({event_, value});
}

void Journal::packs(Id value, const std::optional<PackedForm>& form) {
  auto& forms = own_.forms;
  if (forms.size() <= static_cast<std::size_t>(value)) forms.resize(static_cast<std::size_t>(value) + 1);
  forms[value] = form;
}

void Journal::set_cost(Id op, float microseconds, bool again) {
  float& cost = (known_ ? known_ : &own_)->costs[op];
  cost = again && cost > 0 ? std::min(cost, microseconds) : microseconds;
}

std::shared_ptr<LateCosts> Journal::close_late_costs() {
  if (late_) late_->close();
  return late_;
}

}  // namespace reprise::internal
