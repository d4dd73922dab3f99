// Planning in the background: one thread for the process, jobs one after the other.
//
// The queue is never destroyed. When the process exits, the job that runs is cancelled, those that wait are dropped,
// and the thread ends; jobs that come later, from the destructor of a global object, are dropped at once.
//
// After fork() the child has the queue with all its jobs, the one that was running included, which begins anew. It has
// no thread until a job is added or waited for.
#pragma once

#include <atomic>
#include <memory>

namespace reprise::internal {

// Keeps alive what it needs. Either `run` is called, or `dropped`; both, in this order, if `run` throws.
class PlanningJob {
 public:
  PlanningJob() = default;
  virtual ~PlanningJob() = default;
  PlanningJob(const PlanningJob&) = delete;
  PlanningJob& operator=(const PlanningJob&) = delete;

  // Asked on the planning thread, without a lock, right before it would run. False: it is dropped.
  [[nodiscard]] virtual bool still_wanted() { return true; }
  // On the planning thread. Ends soon once it is cancelled. In the child of a fork it may begin a second time: what
  // it did before the fork, it did in the child, too, as far as that happened under the arbiter.
  virtual void run() = 0;
  // It will not run. On the planning thread, on one that adds it, or on the one that exits; only the second may hold
  // the arbiter.
  virtual void dropped() noexcept {}

  void cancel() noexcept { cancelled_ = true; }
  [[nodiscard]] const std::atomic<bool>& cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> cancelled_{false};
};

// Loads the solver, and makes the tables that planning needs, on a thread of the program: the process may exit while
// the planning thread would do it, and then destroy them under its hands. Requires that the arbiter is not held. Jobs
// that are added before it was called are dropped.
void prepare_planning();

// Behind the jobs that are there. False: it was dropped, because the process is about to end or nothing was prepared.
bool plan_later(std::shared_ptr<PlanningJob>);

// Until all jobs that were there are done or dropped.
void wait_for_planning();

// fork() copies only the thread that calls it: no other may be in the queue then.
void lock_planning_for_fork();
void unlock_planning_after_fork();
// The same in the child, where there is no planning thread, and nobody waits.
void renew_planning_after_fork();

}  // namespace reprise::internal
