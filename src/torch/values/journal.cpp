#include "torch/values/journal.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

void Journal::observe() {
  observing_ = measuring_ = measuring_other_ = true;
  (void)meter_.take_other_peak();
}

void Journal::measure(std::vector<float> costs, bool measure_costs, bool measure_other) {
  costs_ = std::move(costs);
  measuring_ = measure_costs;
  measuring_other_ = measure_other;
  if (measuring_other_) (void)meter_.take_other_peak();
}

void Journal::give_up(const char* why) {
  observing_ = measuring_other_ = false;
  unplannable_ = why;
}

void Journal::take_over_other_bytes(const RecordedPass& left) {
  const std::size_t measured = other_.size();
  other_.resize(static_cast<std::size_t>(moment_));
  for (std::size_t m = measured; m < other_.size(); ++m) other_[m] = left.other[m];
}

// What a node of backward was given goes right after the node has ended. By the time that values are recomputed for the
// next one, it is gone: what was there in between counts as if the node had had it.
void Journal::begin(ObservedMoment moment) {
  in_event_ = moment.op == no_operator;
  const bool after_event = std::exchange(after_event_, in_event_);
  if (measuring_other_) {
    Bytes between = meter_.take_other_peak();
    if (after_event && other_.size() == static_cast<std::size_t>(moment_) && moment_ > 0) {
      other_.back().within = std::max(other_.back().within, between);
      between = meter_.other();
    }
    other_.push_back({between, 0});
  }
  if (in_event_) event_ = moment_;
  ++moment_;
  if (observing_) seen_.moments.push_back(moment);
}

void Journal::end_event(float cost) {
  end_moment(cost);
  in_event_ = false;
}

void Journal::end_moment(float cost) {
  if (measuring_other_ && !other_.empty()) other_.back().within = meter_.take_other_peak();
  if (observing_ && !seen_.moments.empty()) seen_.moments.back().cost = cost;
}

void Journal::end_operator() {
  if (measuring_other_) (void)meter_.take_other_peak();
}

void Journal::made(Id value) {
  if (observing_) seen_.watched.push_back(value);
}

void Journal::needed(Id value) {
  if (!observing_ || event_ >= static_cast<Id>(seen_.moments.size())) return;
  seen_.needs.push_back({event_, value});
}

bool Journal::knows_form_of(Id value) const {
  return static_cast<std::size_t>(value) < seen_.forms.size() && seen_.forms[value];
}

void Journal::packs(Id value, const std::optional<PackedForm>& form) {
  auto& forms = seen_.forms;
  if (forms.size() <= static_cast<std::size_t>(value)) forms.resize(static_cast<std::size_t>(value) + 1);
  forms[value] = form;
}

void Journal::cost(Id op, float microseconds, bool again) {
  costs_[op] = again && costs_[op] > 0 ? std::min(costs_[op], microseconds) : microseconds;
}

Observations Journal::take_observations() {
  return std::move(seen_);
}

std::shared_ptr<LateCosts> Journal::close_late_costs() {
  if (late_) late_->close();
  return late_;
}

}  // namespace reprise::internal
