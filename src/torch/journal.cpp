#include "torch/journal.h"

#include <algorithm>

#include "torch/meter.h"

namespace reprise::internal {

void Journal::observe() {
  observing_ = measuring_ = measuring_other_ = true;
  (void)meter::take_other_peak();
}

void Journal::measure(std::vector<float> costs, bool measure_costs, bool measure_other) {
  costs_ = std::move(costs);
  measuring_ = measure_costs;
  measuring_other_ = measure_other;
  if (measuring_other_) (void)meter::take_other_peak();
}

void Journal::give_up(const char* why) {
  observing_ = measuring_other_ = false;
  unplannable_ = why;
}

void Journal::take_over_other_bytes(const Period& left) {
  const std::size_t measured = other_.size();
  other_.resize(static_cast<std::size_t>(moment_));
  for (std::size_t m = measured; m < other_.size(); ++m) other_[m] = left.other[m];
}

void Journal::begin(ObservedMoment moment) {
  ++moment_;
  if (measuring_other_) other_.push_back({meter::take_other_peak(), 0});
  if (observing_) seen_.moments.push_back(moment);
}

void Journal::end_moment(float cost) {
  if (measuring_other_ && !other_.empty()) other_.back().within = meter::take_other_peak();
  if (observing_ && !seen_.moments.empty()) seen_.moments.back().cost = cost;
}

void Journal::end_operator() {
  if (measuring_other_) (void)meter::take_other_peak();
}

void Journal::made(Id value) {
  if (observing_) seen_.watched.push_back(value);
}

void Journal::needed(Id value) {
  if (!observing_ || seen_.moments.empty()) return;
  seen_.needs.resize(seen_.moments.size());
  seen_.needs.back().push_back(value);
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
  seen_.needs.resize(seen_.moments.size());
  seen_.event_names.resize(seen_.moments.size());
  return std::move(seen_);
}

}  // namespace reprise::internal
