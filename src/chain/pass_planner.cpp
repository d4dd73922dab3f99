#include "chain/pass_planner.h"

#include <exception>

#include "reprise/chain/statistics.h"
#include "reprise/trace/error.h"

namespace reprise::internal {

std::shared_ptr<const ChainPlan> PassPlanner::plan(const Schedule& schedule, const ChainForm& form,
                                                   const ChainPlanning& planning) {
  Plan plan = schedule.watched_plan(form, planning);
  std::optional<Bytes> limit;
  if (schedule.needs_sizes()) limit = schedule.limit().value_or(plan.budget);
  return std::make_shared<ChainPlan>(form, std::move(plan), limit);
}

std::shared_ptr<const ChainPlan> PassPlanner::make(const SchedulePointer& schedule, const ChainForm& form, bool once) {
  if (!once) discard();
  const bool later = in_background_ && !once && schedule->needs_sizes();
  auto made = make_now(*schedule, form, later);
  if (later) start(schedule, form);
  return made;
}

std::shared_ptr<const ChainPlan> PassPlanner::make_now(const Schedule& schedule, const ChainForm& form, bool at_once) {
  cancel_.store(false, std::memory_order_relaxed);
  std::exception_ptr thrown;
  ChainPlanning planning{.cancel = &cancel_, .at_once = at_once};
  // An exception must not go through a planner, which was not made for it.
  planning.progress = [&](double share) {
    if (!progress_ || thrown) return;
    try {
      progress_(share);
    } catch (...) {
      thrown = std::current_exception();
      cancel_.store(true, std::memory_order_relaxed);
    }
  };
  std::shared_ptr<const ChainPlan> made;
  try {
    made = plan(schedule, form, planning);
  } catch (const BadOption&) {
    if (!thrown && cancel_.load(std::memory_order_relaxed)) {
      throw ChainError("[chain] planning was cancelled before there was a plan");
    }
    if (!thrown) throw;
  }
  if (thrown) std::rethrow_exception(thrown);
  return made;
}

void PassPlanner::start(SchedulePointer schedule, const ChainForm& form) {
  thread_ = std::thread([this, schedule = std::move(schedule), form] {
    try {
      made_ = plan(*schedule, form, {.cancel = &cancel_background_});
    } catch (const std::exception&) {
      made_.reset();
    }
    done_.store(true, std::memory_order_release);
  });
}

std::shared_ptr<const ChainPlan> PassPlanner::take() {
  if (!done_.load(std::memory_order_acquire)) return nullptr;
  auto made = std::move(made_);
  discard();
  return made;
}

void PassPlanner::wait() {
  if (thread_.joinable()) thread_.join();
}

void PassPlanner::discard() {
  cancel_background_.store(true, std::memory_order_relaxed);
  wait();
  made_.reset();
  done_.store(false, std::memory_order_relaxed);
  cancel_background_.store(false, std::memory_order_relaxed);
}

}  // namespace reprise::internal
