// A plan that a period follows: how far it has come, and what it has dropped. Under the arbiter's lock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "torch/plans/period.h"
#include "torch/plans/script.h"
#include "torch/values/rules.h"

namespace reprise::internal {

class PlanRun {
 public:
  explicit PlanRun(std::shared_ptr<const Script> script);
  // Nothing: the period has no plan that keeps to the budget of the step.
  [[nodiscard]] static std::optional<PlanRun> of(const Period&, const Rules&);
  // The same for a script, which may be there before its period.
  [[nodiscard]] static std::optional<PlanRun> of(std::shared_ptr<const Script>, const Rules&);

  [[nodiscard]] const std::shared_ptr<const Script>& script() const { return script_; }
  // Nothing is forgotten, and nothing has to be under so large a budget: who follows it does what everybody does.
  [[nodiscard]] bool asks_for_nothing(Bytes budget) const;
  void at(Id moment) { moment_ = moment; }

  // Whether this event is the one the plan has at this moment.
  [[nodiscard]] bool expects(Id moment, std::uint64_t event) const {
    return moment < script_->moments() && script_->events[moment] == event;
  }
  // Whether the plan still counts on it.
  [[nodiscard]] bool keeps(Id value) const;
  // Whether it is to be kept when it is made.
  [[nodiscard]] bool owns(Id value) const;

  // Whether it has dropped it: a save does not keep it.
  [[nodiscard]] bool dropped(Id value) const;
  void drop(Id value) { dropped_[value] = true; }
  void bring_back(Id value) { dropped_[value] = false; }

 private:
  std::shared_ptr<const Script> script_;
  Id moment_ = 0;
  std::vector<bool> dropped_;  // by value
};

}  // namespace reprise::internal
