#include "torch/open_steps.h"

#include <algorithm>

#include "torch/meter.h"

namespace reprise::internal {

void OpenSteps::open(const Rules& rules) {
  if (open_.empty()) {
    meter::mark_peak();
    level_ = meter::other();
    reserve_ = 0;
  }
  open_.push_back(&rules);
  set_limit();
}

void OpenSteps::close(const Rules& rules) {
  open_.erase(std::find(open_.begin(), open_.end(), &rules));
  set_limit();
}

void OpenSteps::keep_only(const Rules* rules) {
  open_.clear();
  if (rules) open_.push_back(rules);
  set_limit();
}

bool OpenSteps::any_of(const Rules& rules) const {
  return std::find(open_.begin(), open_.end(), &rules) != open_.end();
}

// With other bytes O, plans for shares of L + (B - L) / n have values of at most (B - L) / n + L - O each: together
// with O that is no more than B, because O is never less than L.
Bytes OpenSteps::share(Bytes budget, int steps) const {
  if (steps <= 1 || budget == no_limit || level_ >= budget) return budget;
  return level_ + (budget - level_) / steps;
}

void OpenSteps::reserve(Bytes bytes) {
  if (reserve_ == bytes) return;
  reserve_ = bytes;
  set_limit();
}

void OpenSteps::reserve_at_least(Bytes bytes) {
  reserve(std::max(reserve_, bytes));
}

void OpenSteps::set_limit() const {
  Bytes smallest = meter::unlimited;
  for (const Rules* const rules : open_) smallest = std::min(smallest, rules->budget());
  meter::limit(smallest, smallest == meter::unlimited ? 0 : std::min(reserve_, smallest / 16));
}

}  // namespace reprise::internal
