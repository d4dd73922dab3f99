#include "torch/session/recorded_pass_tracker.h"

#include <algorithm>

#include "torch/memory/counted_device.h"
#include "torch/memory/meter.h"
#include "torch/values/open_steps.h"

namespace reprise::internal {
namespace {

Bytes largest_packed(const PassProfile& profile) {
  Bytes largest = 0;
  for (const auto& form : profile.forms) {
    if (form) largest = std::max(largest, meter::counted(form->bytes()));
  }
  return largest;
}

}  // namespace

bool RecordedPassTracker::wants_recording() const {
  return known_.all().empty() || known_.all().back()->given || !known_.all().back()->costs_settled();
}

// It is memory beside the budget.
Bytes RecordedPassTracker::most_bytes() const {
  constexpr Bytes without_budget = 8 << 20, least = 4 << 20, part = 32;
  return context_->budget() == no_limit ? without_budget : least + context_->budget() / part;
}

void RecordedPassTracker::begin_step() {
  known_.keep_within(most_bytes());
  first_in_step_ = true;
  longest_.reset();
  ended_ = planned_ = 0;
  seconds_of_device_ = 0;
}

void RecordedPassTracker::end_step() {
  announced_.clear();
  if (ended_ > 0) longest_of_last_step_ = longest_;
}

std::shared_ptr<RecordedPass> RecordedPassTracker::longest() const {
  const auto longest = longest_.lock();
  return longest ? longest : longest_of_last_step_.lock();
}

// ---- one begins ----------------------------------------------------------------------------------------------------

std::shared_ptr<RecordedPass> RecordedPassTracker::guess() const {
  std::shared_ptr<RecordedPass> guess = first_in_step_ ? first_.lock() : nullptr;
  if (const auto last = last_.lock(); !first_in_step_ && last) guess = last->successor.lock();
  if (!guess && !known_.all().empty()) guess = known_.all().back();
  return guess;
}

std::vector<std::shared_ptr<LateCosts>> RecordedPassTracker::late_costs_of_next() const {
  const auto next = guess();
  return next ? next->late : std::vector<std::shared_ptr<LateCosts>>();
}

const AnnouncedPlan* RecordedPassTracker::announced_after(int ended) const {
  const auto found = std::find_if(announced_.begin(), announced_.end(),
                                  [&](const AnnouncedPlan& plan) { return plan.place_in_step == ended; });
  return found == announced_.end() ? nullptr : &*found;
}

std::shared_ptr<Recording> RecordedPassTracker::begin() {
  if (const AnnouncedPlan* const announced = announced_after(ended_)) {
    auto recording = begin(nullptr);
    recording->follow_plan(announced->executable);
    return recording;
  }
  std::shared_ptr<RecordedPass> followed = guess();
  if (followed && followed->record_anew) {
    followed->record_anew = false;
    followed.reset();
  }
  return begin(std::move(followed));
}

std::shared_ptr<Recording> RecordedPassTracker::begin(std::shared_ptr<RecordedPass> followed) {
  context_->smallest(smallest());
  if (followed) followed->take_late_costs();
  auto recording = std::make_shared<Recording>(context_, std::move(followed), first_in_step_);
  if (const auto& pass = recording->pass(); pass && context_->packs()) {
    const bool planned = recording->plan() && context_->device().is_cpu();
    OpenSteps::of_process().reserve(CountedDevices::of_process().cpu(), planned ? 0 : largest_packed(pass->profile));
  }
  return recording;
}

std::shared_ptr<Recording> RecordedPassTracker::begin_in_the_middle() {
  auto recording = begin(nullptr);
  recording->journal().mark_unplannable();  // its first operators were not seen
  return recording;
}

// ---- one has ended -------------------------------------------------------------------------------------------------

std::shared_ptr<RecordedPass> RecordedPassTracker::end(Recording& r) {
  ++ended_;
  if (r.cursor().following() && r.pass()) {
    learn_from(r);
  } else if (r.journal().observing() && r.journal().plannable() && !r.journal().profile().names.empty()) {
    remember(r);
  }
  const auto& pass = r.pass();
  if (pass && first_in_step_) first_ = pass;
  if (const auto last = last_.lock(); pass && last && !first_in_step_) last->successor = pass;
  first_in_step_ = false;
  last_ = pass;
  if (!pass) return nullptr;
  if (context_->accelerator()) seconds_of_device_ += pass->profile.seconds() + r.recomputing();
  const auto longest = longest_.lock();
  if (!longest || longest->recipes->operators.size() < pass->recipes->operators.size()) {
    longest_ = pass;
    see_longest(r);
  }
  return pass;
}

void RecordedPassTracker::see_longest(Recording& r) {
  const auto& pass = r.pass();
  LongestPass& seen = seen_of_longest_;
  const auto& measured = r.journal().other();
  const auto& other = measured.size() == pass->profile.other.size() ? measured : pass->profile.other;
  if (seen.pass.lock() != pass || seen.other != other) {
    seen.pass = pass;
    seen.other = other;
    seen.kept_peak.reset();
  }
  seen.executable = r.plan() ? r.plan()->executable() : r.is_unmonitored() ? pass->executable : nullptr;
}

// Makes a recorded pass of one that was never seen before.
void RecordedPassTracker::remember(Recording& r) {
  auto pass = std::make_shared<RecordedPass>();
  pass->recipes = r.cursor().shared();
  pass->recipes->shrink();
  pass->profile = r.journal().take_profile();
  pass->profile.shrink();
  if (r.journal().late()) {
    pass->late.push_back(r.journal().close_late_costs());
  } else {
    pass->measured = 1;
  }
  pass->place_in_step = ended_ - 1;
  known_.add(pass, most_bytes());
  planning_.went_through(*pass, r.recomputing(), r.plan() != nullptr, context_->budget());
  if (const AnnouncedPlan* const announced = announced_after(ended_ - 1); announced && r.plan()) {
    ++planned_;
    pass->use(announced->executable, announced->plan);
    pass->budget = announced->executable->budget;
    context_->hints().learn(*pass);
  }
  context_->counters().trace_is_new();
  r.remembered_as(std::move(pass));
}

void RecordedPassTracker::learn_from(Recording& r) {
  RecordedPass& pass = *r.pass();
  if (!r.cursor().complete()) {  // it ended before its time
    context_->counters().diverged("the step ended after operator " + std::to_string(r.cursor().next()) + " of " +
                                  std::to_string(r.cursor().recipes().operators.size()));
    return;
  }
  known_.met_again(pass);
  if (r.journal().measuring()) {  // the host; an accelerator knows the rest later
    if (r.journal().late()) {
      pass.late.push_back(r.journal().close_late_costs());
    } else {
      ++pass.measured;
    }
  }
  const bool planned = r.plan() || r.is_unmonitored();
  planning_.went_through(pass, r.recomputing(), planned, context_->budget());
  if (planned) ++planned_;
  pass.add_other(r.journal().other());
}

SmallestBudget RecordedPassTracker::smallest() const {
  for (auto known = known_.all().rbegin(); known != known_.all().rend(); ++known) {
    const RecordedPass& pass = **known;
    if (pass.infeasible) return {pass.smallest_feasible, pass.floor, pass.floor_set_by};
  }
  return {};
}

}  // namespace reprise::internal
