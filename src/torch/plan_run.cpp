#include "torch/plan_run.h"

#include "torch/open_steps.h"
#include "torch/process.h"

namespace reprise::internal {
namespace {

bool usable(const Period& period, const Rules& rules) {
  if (!period.script || rules.forgets_everything()) return false;
  if (rules.budget() == no_limit && !period.given) return false;
  const OpenSteps& steps = process().steps();
  return period.script->peak <= steps.share(rules.place(), rules.budget(), steps.count(rules.place()));
}

}  // namespace

PlanRun::PlanRun(std::shared_ptr<const Script> script) : script_(std::move(script)) {
  dropped_.resize(script_->owned.size());
}

std::optional<PlanRun> PlanRun::of(const Period& period, const Rules& rules) {
  if (!usable(period, rules)) return std::nullopt;
  return PlanRun(period.script);
}

bool PlanRun::keeps(Id value) const {
  return static_cast<std::size_t>(value) < script_->last_drop.size() && script_->last_drop[value] > moment_;
}

bool PlanRun::owns(Id value) const {
  return static_cast<std::size_t>(value) < script_->owned.size() && script_->owned[value];
}

bool PlanRun::dropped(Id value) const {
  return static_cast<std::size_t>(value) < dropped_.size() && dropped_[value];
}

}  // namespace reprise::internal
