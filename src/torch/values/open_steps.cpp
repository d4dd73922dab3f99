#include "torch/values/open_steps.h"

#include <algorithm>
#include <utility>

#include "torch/memory/place.h"

namespace reprise::internal {

OpenSteps& OpenSteps::of_process() {
  static auto& one = *new OpenSteps;
  return one;
}

void OpenSteps::open(const Rules& rules) {
  for (const auto& [place, budget] : rules.places()) {
    if (count(*place) != 0) continue;
    place->begin();
    at_[place] = {place->meter().other(), 0};
  }
  open_.push_back(&rules);
  set_limits(rules);
}

void OpenSteps::close(const Rules& rules) {
  open_.erase(std::find(open_.begin(), open_.end(), &rules));
  leave(rules);
}

void OpenSteps::settle(Rules& rules, const Place& place, std::span<const Bytes> budgets) {
  const auto steps = std::erase(open_, &rules);
  leave(rules);
  rules.settle(place);
  rules.budgets(budgets);
  for (std::size_t i = 0; i < steps; ++i) open(rules);
}

void OpenSteps::keep_only(const Rules* rules) {
  const std::vector<const Rules*> were_open = std::exchange(open_, {});
  if (rules) open_.push_back(rules);
  for (const auto& [place, at] : at_) {
    set_limit(*place);
    const auto was_here = [&, one = place](const Rules* of_step) { return of_step->place_of(one->meter()) != nowhere; };
    if (count(*place) == 0 && std::any_of(were_open.begin(), were_open.end(), was_here)) place->end();
  }
}

bool OpenSteps::any_of(const Rules& rules) const {
  return std::find(open_.begin(), open_.end(), &rules) != open_.end();
}

int OpenSteps::count(const Place& place) const {
  return static_cast<int>(std::count_if(open_.begin(), open_.end(),
                                        [&](const Rules* rules) { return rules->place_of(place.meter()) != nowhere; }));
}

// With other bytes O, plans for shares of L + (B - L) / n have values of at most (B - L) / n + L - O each: together
// with O that is no more than B, because O is never less than L.
Bytes OpenSteps::share(const Place& place, Bytes budget, int steps) const {
  const auto at = at_.find(&place);
  const Bytes level = at == at_.end() ? 0 : at->second.level;
  if (steps <= 1 || budget == no_limit || level >= budget) return budget;
  return level + (budget - level) / steps;
}

void OpenSteps::reserve(const Place& place, Bytes bytes) {
  Bytes& reserve = at_[&place].reserve;
  if (reserve == bytes) return;
  reserve = bytes;
  set_limit(place);
}

void OpenSteps::reserve_at_least(const Place& place, Bytes bytes) {
  reserve(place, std::max(at_[&place].reserve, bytes));
}

void OpenSteps::leave(const Rules& rules) const {
  set_limits(rules);
  for (const auto& [place, budget] : rules.places()) {
    if (count(*place) == 0) place->end();
  }
}

void OpenSteps::set_limits(const Rules& rules) const {
  for (const auto& [place, budget] : rules.places()) set_limit(*place);
}

void OpenSteps::set_limit(const Place& place) const {
  Bytes smallest = meter::unlimited;
  for (const Rules* const rules : open_) {
    for (const auto& [one, budget] : rules->places()) {
      if (one == &place) smallest = std::min(smallest, budget);
    }
  }
  const auto at = at_.find(&place);
  const Bytes reserve = at == at_.end() ? 0 : at->second.reserve;
  place.limit(smallest, smallest == meter::unlimited ? 0 : std::min(reserve, smallest / 16));
}

}  // namespace reprise::internal
