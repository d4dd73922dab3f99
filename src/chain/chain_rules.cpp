#include "chain/chain_rules.h"

#include <fmt/format.h>

#include "reprise/trace/error.h"

namespace reprise::internal {

void ChainRules::execute(const Action& action) {
  action_ = action;
  const Id target = action.target;
  const bool names_moment = action.kind == Action::Kind::run || action.kind == Action::Kind::replay;
  if (target < 0 || target >= (names_moment ? 2 * layers_ : values())) fail(Rule::known, "there is no such thing");
  switch (action.kind) {
    case Action::Kind::run: {
      if (target != next_) fail(Rule::run_once, fmt::format("moment {} is next", next_));
      const Id layer = 2 * layers_ - 1 - target;
      if (target < layers_) {
        forward(target);
      } else {
        require_resident(state_value(layer), "it is an input");
        if (tapes_) require_resident(2 * layer + 1, "it is an input");
      }
      ++next_;
      return;
    }
    case Action::Kind::replay:
      if (target >= next_) fail(Rule::has_run, "it has not run yet");
      if (target >= layers_) fail(Rule::replayable, "it is an event");
      return forward(target);
    case Action::Kind::drop: require_resident(target, "it is to be dropped"); return resident_.set(target, 0);
    case Action::Kind::put:
    case Action::Kind::get: fail(Rule::known, "the plan has no tiers");
  }
}

void ChainRules::end() const {
  if (next_ == 2 * layers_) return;
  throw BadOption(fmt::format("[chain] the schedule's steps are not valid: they end before moment {} (rule: {})", next_,
                              name(Rule::complete)));
}

void ChainRules::forward(Id layer) {
  require_resident(state_value(layer), "it is an input");
  resident_.set(state_value(layer + 1), 1);
  if (tapes_) resident_.set(2 * layer + 1, 1);
}

void ChainRules::require_resident(Id value, const char* why) const {
  if (resident_[value] == 0) fail(Rule::resident, fmt::format("{}, but value {} is not resident", why, value));
}

void ChainRules::fail(Rule rule, const std::string& why) const {
  throw BadOption(fmt::format("[chain] the schedule's steps are not valid: {} {}: {} (rule: {})", name(action_.kind),
                              action_.target, why, name(rule)));
}

}  // namespace reprise::internal
