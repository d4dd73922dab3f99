#include "torch/values/plan_run.h"

#include <algorithm>
#include <utility>

#include "torch/values/open_steps.h"

namespace reprise::internal {
namespace {

bool usable(const Script& script, const Rules& rules) {
  if (rules.forgets_everything()) return false;
  const OpenSteps& steps = OpenSteps::of_process();
  return script.peak <= steps.share(rules.place(), rules.budget(), steps.count(rules.place()));
}

}  // namespace

PlanRun::PlanRun(std::shared_ptr<const Script> script) : script_(std::move(script)) {
  dropped_.resize(script_->owned.size());
}

std::optional<PlanRun> PlanRun::of(const Period& period, const Rules& rules) {
  if (!period.script || (rules.budget() == no_limit && !period.given)) return std::nullopt;
  return of(period.script, rules);
}

std::optional<PlanRun> PlanRun::of(std::shared_ptr<const Script> script, const Rules& rules) {
  if (!usable(*script, rules)) return std::nullopt;
  return PlanRun(std::move(script));
}

bool PlanRun::asks_for_nothing(Bytes budget) const {
  return script_->peak <= budget / 2 && std::all_of(script_->steps.begin(), script_->steps.end(), [](const auto& step) {
           return step.kind == Script::Step::Kind::end;
         });
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
