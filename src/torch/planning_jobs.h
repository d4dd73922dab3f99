// The planning of one session: which periods are worth a plan, and the jobs that make one. Under the arbiter's lock,
// unless it says otherwise.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>

#include "torch/planning_budget.h"
#include "torch/rules.h"

namespace reprise::internal {

class PlanningJobs : public std::enable_shared_from_this<PlanningJobs> {
 public:
  // `folder`: where plans are kept; empty: nowhere.
  PlanningJobs(std::shared_ptr<Rules>, PlanningBudget, std::filesystem::path folder);

  [[nodiscard]] PlanningBudget& budget() { return budget_; }

  // A plan for this period, unless it has one that is good enough, or is not worth one: the budget says no, or
  // `new_in_a_row` periods were met and none of them again. A plan in the folder is taken at once.
  void ask_for(const std::shared_ptr<Period>&, Bytes budget, int new_in_a_row);

  [[nodiscard]] bool under_way() const { return count_ > 0; }
  // Nobody is going to use the plan that is being made. Any thread, with or without the lock.
  void cancel();

 private:
  class Job;

  [[nodiscard]] bool worth_it(const Period&, Bytes budget, int new_in_a_row) const;
  [[nodiscard]] bool take_from_folder(Period&, Bytes budget) const;
  // On the planning thread, not under the lock, for so many seconds at most.
  void plan(const std::shared_ptr<Period>&, Bytes budget, double seconds, Job&);

  const std::shared_ptr<Rules> rules_;
  PlanningBudget budget_;
  const std::filesystem::path folder_;
  int count_ = 0;           // that wait or run
  Job* running_ = nullptr;  // one of them
};

}  // namespace reprise::internal
