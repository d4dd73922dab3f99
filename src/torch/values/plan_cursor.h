// A plan that a pass follows: the moment it has come to, and what it has dropped. Under the arbiter's lock.
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
  // Returns a cursor of the plan of a pass. Empty if there is none that keeps to the budget of the step.
  [[nodiscard]] static std::optional<PlanCursor> of(const RecordedPass&, const RecordingContext&);
  // Returns the same for a plan that may be there before its pass.
  [[nodiscard]] static std::optional<PlanCursor> of(std::shared_ptr<const ExecutablePlan>, const RecordingContext&);

  [[nodiscard]] const std::shared_ptr<const ExecutablePlan>& executable() const { return executable_; }
  // Returns true if the plan evicts nothing, under a budget so large that nothing has to be.
  [[nodiscard]] bool is_noop(Bytes budget) const;
  void at(Id moment) { moment_ = moment; }

  // Returns whether this event is the one that the plan has at this moment.
  [[nodiscard]] bool expects(Id moment, std::uint64_t event) const {
    return moment < executable_->moments() && executable_->events[moment] == event;
  }
  // Returns whether the plan still needs the value.
  [[nodiscard]] bool keeps(Id value) const;
  // Returns true if the plan keeps the value as soon as it is made.
  [[nodiscard]] bool owns(Id value) const;

  // Returns whether the plan has dropped the value: a save does not keep it.
  [[nodiscard]] bool dropped(Id value) const;
  void drop(Id value) { dropped_[value] = true; }
  void bring_back(Id value) { dropped_[value] = false; }

 private:
  std::shared_ptr<const ExecutablePlan> executable_;
  Id moment_ = 0;
  std::vector<bool> dropped_;  // by value
};

}  // namespace reprise::internal
