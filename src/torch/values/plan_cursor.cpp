#include "torch/values/plan_cursor.h"

#include <algorithm>
#include <utility>

#include "torch/values/open_steps.h"

namespace reprise::internal {
namespace {

bool usable(const ExecutablePlan& executable, const RecordingContext& context) {
  if (context.evicts_everything()) return false;
  const OpenSteps& steps = OpenSteps::of_process();
  return executable.peak <= steps.share(context.device(), context.budget(), steps.count(context.device()));
}

}  // namespace

PlanCursor::PlanCursor(std::shared_ptr<const ExecutablePlan> executable) : executable_(std::move(executable)) {
  dropped_.resize(executable_->owned.size());
}

std::optional<PlanCursor> PlanCursor::of(const RecordedPass& pass, const RecordingContext& context) {
  if (!pass.executable || (context.budget() == no_limit && !pass.given)) return std::nullopt;
  return of(pass.executable, context);
}

std::optional<PlanCursor> PlanCursor::of(std::shared_ptr<const ExecutablePlan> executable,
                                         const RecordingContext& context) {
  if (!usable(*executable, context)) return std::nullopt;
  return PlanCursor(std::move(executable));
}

bool PlanCursor::is_noop(Bytes budget) const {
  return executable_->peak <= budget / 2 &&
         std::all_of(executable_->steps.begin(), executable_->steps.end(),
                     [](const auto& step) { return step.kind == ExecutablePlan::Step::Kind::end; });
}

bool PlanCursor::keeps(Id value) const {
  return static_cast<std::size_t>(value) < executable_->last_drop.size() && executable_->last_drop[value] > moment_;
}

bool PlanCursor::owns(Id value) const {
  return static_cast<std::size_t>(value) < executable_->owned.size() && executable_->owned[value];
}

bool PlanCursor::dropped(Id value) const {
  return static_cast<std::size_t>(value) < dropped_.size() && dropped_[value];
}

}  // namespace reprise::internal
