// A plan that a pass follows: how far it has come, and what it has dropped. Under the arbiter's lock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "torch/plans/executable_plan.h"
#include "torch/plans/recorded_pass.h"
#include "torch/values/recording_context.h"

namespace reprise::internal {

class PlanCursor {
 public:
  explicit PlanCursor(std::shared_ptr<const ExecutablePlan> executable);
  // Nothing: the pass has no plan that keeps to the budget of the step.
  [[nodiscard]] static std::optional<PlanCursor> of(const RecordedPass&, const RecordingContext&);
  // The same for a executable, which may be there before its pass.
  [[nodiscard]] static std::optional<PlanCursor> of(std::shared_ptr<const ExecutablePlan>, const RecordingContext&);

  [[nodiscard]] const std::shared_ptr<const ExecutablePlan>& executable() const { return executable_; }
  // Nothing is evicted, and nothing has to be under so large a budget: who follows it does what everybody does.
  [[nodiscard]] bool is_noop(Bytes budget) const;
  void at(Id moment) { moment_ = moment; }

  // Whether this event is the one the plan has at this moment.
  [[nodiscard]] bool expects(Id moment, std::uint64_t event) const {
    return moment < executable_->moments() && executable_->events[moment] == event;
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
  std::shared_ptr<const ExecutablePlan> executable_;
  Id moment_ = 0;
  std::vector<bool> dropped_;  // by value
};

}  // namespace reprise::internal
