// The planning of one session: which passes are worth a plan, and the jobs that make one. Under the arbiter's lock,
// unless it says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "torch/plans/planning_budget.h"
#include "torch/plans/recorded_pass_cache.h"
#include "torch/values/recording_context.h"

namespace reprise::internal {

// The plan of a pass, and what is executed of it.
struct PassPlan {
  PlanResult result;
  std::shared_ptr<const ExecutablePlan> executable;  // if there is a plan
  std::string floor_set_by;                          // if there is none
  std::string failure;                               // of planning itself
  std::string not_written;  // why the plan is not in the folder; empty: it is, or there is none
};

// A plan that is in the folder is taken from there, and one that is made is written there; empty: neither. Not under
// the lock: it takes as long as the options say.
[[nodiscard]] PassPlan plan_pass(const RecordedPass&, const OfferedTiers&, PlanOptions,
                                 const std::filesystem::path& folder);

class PlanningJobs : public std::enable_shared_from_this<PlanningJobs> {
 public:
  // `folder`: where plans are kept; empty: untracked.
  PlanningJobs(std::shared_ptr<RecordingContext>, PlanningBudget, std::filesystem::path folder);

  [[nodiscard]] PlanningBudget& budget() { return budget_; }

  // A plan for this pass, one of those that are known, unless it has one that is good enough, or is not worth one:
  // the budget says no, or many new passes were met and none of them again. A plan in the folder is taken at once. The
  // search begins with the plan it has, or with that of a relative.
  void ask_for(const std::shared_ptr<RecordedPass>&, Bytes budget, const RecordedPassCache&);

  // What was learnt from plans in the folder, for steps that no plan is for: the first.
  void read_advice_for(Bytes budget);

  [[nodiscard]] bool under_way() const { return count_ > 0; }
  // Returns the number of the job that was asked for last (Planning::wait); zero: none was.
  [[nodiscard]] std::uint64_t last() const { return last_; }
  // Cancels the plan that is being made. May be called on any thread, with or without the lock.
  void cancel();

 private:
  class Job;

  [[nodiscard]] bool worth_it(const RecordedPass&, Bytes budget, int new_in_a_row) const;
  [[nodiscard]] bool take_from_folder(RecordedPass&, Bytes budget) const;
  // On the planning thread, not under the lock, for so many seconds at most.
  void plan(const std::shared_ptr<RecordedPass>&, Bytes budget, double seconds, std::optional<Plan> start, Job&);
  bool take(RecordedPass&, PassPlan);

  const std::shared_ptr<RecordingContext> context_;
  PlanningBudget budget_;
  const std::filesystem::path folder_;
  int count_ = 0;           // that wait or run
  std::uint64_t last_ = 0;  // in the queue of the process
  Job* running_ = nullptr;  // one of them
};

}  // namespace reprise::internal
