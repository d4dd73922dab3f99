#include "chain/chain_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/trace/error.h"

namespace reprise::internal {

// ---- one action after the other ----

inline void ChainRules::forward(const Action& action) {
  const Id first = action.target, last = last_moment(action);
  require_resident(action, state_value(first), "it is an input");
  if (state_value(last + 1) >= values_) make_room(last + last / 2 + 64);
  if (action.tier > 0) resident_.clear(first + 1, last + 1);  // only without tapes, and so below
  if (action.tier < 0) resident_.set(first + 1, last + 1);
  resident_.set(state_value(last + 1));
  if (tapes_) resident_.set(2 * last + 1);
}

inline void ChainRules::backward(const Action& action) {
  Id layer = 2 * layers_ - 1 - action.target;
  if (action.tier < 0) fail(action, Rule::known, "there is no such moment");
  for (Id more = action.tier; more > 0; --more) {
    require_resident(action, layer, "it is an input");
    resident_.clear(layer--);
  }
  require_resident(action, state_value(layer), "it is an input");
  if (tapes_) require_resident(action, 2 * layer + 1, "it is an input");
}

inline void ChainRules::execute(const Action& action, bool last_get) {
  const Id target = action.target;
  switch (action.kind) {
    case Action::Kind::drop:
      require_value(action);
      require_resident(action, target, "it is to be dropped");
      return resident_.clear(target);
    case Action::Kind::replay:
      require_moments(action);
      if (last_moment(action) >= next_) fail(action, Rule::has_run, "it has not run yet");
      if (last_moment(action) >= layers_) fail(action, Rule::replayable, "it is an event");
      return forward(action);
    case Action::Kind::run:
      require_moments(action);
      if (target != next_) fail(action, Rule::run_once, fmt::format("moment {} is next", next_));
      if (target >= layers_) {
        backward(action);
      } else {
        if (last_moment(action) >= layers_) fail(action, Rule::known, "there are fewer layers");
        forward(action);
      }
      next_ = last_moment(action) + 1;
      return;
    case Action::Kind::put: {
      Bits& copies = this->copies(action);
      require_resident(action, target, "it is to be put into a tier");
      if (copies[target]) fail(action, Rule::in_tier, "the tier has it already");
      return copies.set(target);
    }
    case Action::Kind::get: {
      Bits& copies = this->copies(action);
      if (!copies[target]) fail(action, Rule::in_tier, "the tier does not have it");
      if (resident_[target]) fail(action, Rule::not_resident, "it is resident already");
      resident_.set(target);
      if (last_get) copies.clear(target);
      return;
    }
  }
}

void ChainRules::execute(std::span<const Action> actions, std::size_t first, std::span<const std::size_t> last_gets) {
  auto last = std::lower_bound(last_gets.begin(), last_gets.end(), first);
  std::size_t i = first;
  for (; last != last_gets.end(); ++last) {
    for (; i < *last; ++i) execute(actions[i], false);
    execute(actions[i++], true);
  }
  for (; i < actions.size(); ++i) execute(actions[i], false);
}

void ChainRules::end() const {
  if (next_ == 2 * layers_) return;
  throw BadOption(fmt::format("[chain] the schedule's steps are not valid: they end before moment {} (rule: {})", next_,
                              name(Rule::complete)));
}

// ---- what there is ----

void ChainRules::set_layers(Id count) {
  layers_ = count;
  make_room(count);
}

void ChainRules::make_room(Id states) {
  values_ = state_value(states) + 1;
  resident_.make_room(values_);
  for (Bits& copies : copies_) copies.make_room(values_);
}

// Throws unless the action is about a state and a tier of the plan.
ChainRules::Bits& ChainRules::copies(const Action& action) {
  require_value(action);
  if (action.tier < 0 || action.tier >= static_cast<Id>(copies_.size())) {
    fail(action, Rule::known, "the plan has no such tier");
  }
  if (tapes_ && action.target % 2 != 0) fail(action, Rule::in_tier, "the tier does not take it");
  return copies_[static_cast<std::size_t>(action.tier)];
}

// ---- errors ----

// While the number of layers is unknown, a value that was never made counts as not resident.
void ChainRules::fail_value(const Action& action) const {
  if (action.target < 0 || layers_ != unknown) fail(action, Rule::known, "there is no such value");
  fail_resident(action, action.target, "it was never made");
}

void ChainRules::fail_resident(const Action& action, Id value, const char* why) {
  fail(action, Rule::resident, fmt::format("{}, but value {} is not resident", why, value));
}

void ChainRules::fail(const Action& action, Rule rule, const std::string& why) {
  throw BadOption(fmt::format("[chain] the schedule's steps are not valid: {} {}: {} (rule: {})", name(action.kind),
                              action.target, why, name(rule)));
}

}  // namespace reprise::internal
