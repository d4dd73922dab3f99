#include "torch/plans/planning_budget.h"

#include <algorithm>
#include <cmath>

namespace reprise::internal {
namespace {

constexpr double saved_if_unknown = 0.3;  // of what recomputing takes under the online policy
constexpr double proven_enough = 0.01;    // a gap below which a longer search is not worth it

// Shorter searches find nothing that the online policy does not.
double least_for(const RecordedPass& pass) {
  constexpr double least = 0.02, by_moment = 5e-5;
  return std::max(least, by_moment * static_cast<double>(pass.profile.moments.size()));
}

}  // namespace

PlanningBudget::PlanningBudget(double share, std::chrono::milliseconds most)
    : share_(share), most_(std::chrono::duration<double>(most).count()) {}

bool PlanningBudget::unlimited() const {
  return std::isinf(share_);
}

void PlanningBudget::trained(double seconds) {
  trained_ += seconds;
  ++steps_;
}

void PlanningBudget::went_through(RecordedPass& pass, double recomputing, bool with_plan, Bytes budget) {
  ++pass.met;
  if (!with_plan) {
    const bool again = pass.online_seconds && pass.online_budget == budget;
    pass.online_seconds = again ? std::min(*pass.online_seconds, recomputing) : recomputing;
    pass.online_budget = budget;
    return;
  }
  pass.planned_seconds = recomputing;
  if (!pass.online_seconds || pass.online_budget != budget) return;
  saved_ += *pass.online_seconds - recomputing;
  without_plans_ += *pass.online_seconds;
}

void PlanningBudget::done(RecordedPass& pass, double reserved, double seconds) {
  reserved_ -= reserved;
  spent_ += seconds;
  pass.searched_for = reserved;
  pass.planned_seconds.reset();
  const double paid_by_credit = std::min(seconds, credit_left());
  from_credit_ += paid_by_credit;
  beyond_credit_ += seconds - paid_by_credit;
  pass.planning_seconds += seconds - paid_by_credit;
}

// Before the first step has ended, it is not known how long steps are.
double PlanningBudget::credit() const {
  constexpr double least = 0.5, most = 2, steps = 8;
  return steps_ == 0 ? most : std::clamp(steps * trained_ / steps_, least, most);
}

double PlanningBudget::credit_left() const {
  return std::max(0.0, credit() - from_credit_ - reserved_);
}

double PlanningBudget::saves_per_step(const RecordedPass& pass) const {
  if (!pass.online_seconds) return 0;
  if (pass.planned_seconds && !pass.outgrew_plan()) return *pass.online_seconds - *pass.planned_seconds;
  const double part = without_plans_ > 0 ? std::clamp(saved_ / without_plans_, 0.0, 1.0) : saved_if_unknown;
  return part * *pass.online_seconds;
}

double PlanningBudget::allows(const RecordedPass& pass, int new_in_a_row) const {
  if (none()) return 0;
  if (unlimited()) return most_;
  const double least = least_for(pass);
  double worth = 0;
  if (pass.met > 1) {
    worth = pass.met * saves_per_step(pass) - pass.planning_seconds;
    // Where nothing has to be evicted, the plan is known at once.
    if (pass.online_seconds == 0.0 && !pass.executable) worth = least;
  }
  const double left = share_ * trained_ - beyond_credit_ - reserved_;
  const double from_credit = std::ldexp(credit_left(), -std::clamp(new_in_a_row, 1, 16));
  const double allowed = std::min(std::max(std::min(worth, left), from_credit), most_);
  return allowed < std::min(least, most_) ? 0 : allowed;
}

bool PlanningBudget::allows_more(const RecordedPass& pass) const {
  if (pass.searched_for >= most_ || (pass.executable && pass.executable->gap < proven_enough)) return false;
  constexpr double longer = 2;
  return pass.met > 1 && allows(pass) >= std::min(longer * pass.searched_for, most_) &&
         pass.met * saves_per_step(pass) > pass.planning_seconds;
}

}  // namespace reprise::internal
