// Planning in the background: one thread, jobs one after the other. A process has one queue (process.h).
//
// The thread has one more task. A process that trains keeps what it frees for the next step; where none follows, others
// may need that memory more. So a while after the last step the system is offered the freed pages.
//
// The queue of a process is never destroyed. When the process exits, the job that runs is cancelled, those that wait
// are dropped, and the thread ends; jobs that come later, from the destructor of a global object, are dropped at once.
//
// After fork() the child has the queue with all its jobs, the one that was running included, which begins anew. It has
// no thread until a job is added or waited for.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

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

class Planning {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static Planning& of_process();

  Planning() = default;
  ~Planning() { end(); }
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  // Loads the solver, and makes the tables that planning needs, on a thread of the program: the process may exit while
  // the planning thread would do it, and then destroy them under its hands. Requires that the arbiter is not held. Jobs
  // that are added before it was called are dropped.
  void prepare();

  // Puts a job behind those that are there, and returns its number, from 1 on. Zero: it was dropped, because the
  // process is about to end or nothing was prepared.
  std::uint64_t add(std::shared_ptr<PlanningJob>);
  // A step has ended: freed memory is offered to the system once nothing was freed for a while.
  void step_ended();
  // Waits until the job with this number, and all before it, are done or dropped.
  void wait(std::uint64_t job);
  // The same, but no longer than this. Returns false if they are not.
  [[nodiscard]] bool wait(std::uint64_t job, std::chrono::milliseconds most);
  // Waits for all jobs that are there.
  void wait() { wait(last()); }
  // Returns the number of the job that was added last.
  [[nodiscard]] std::uint64_t last();
  // Cancels the job that runs, drops those that wait, and ends the thread. Called when the process exits; not on the
  // planning thread, unless one of its jobs ends the process.
  void end();

  // fork() copies only the thread that calls it: no other may be in the queue then.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  // Unlocks it in the child, where there is no planning thread, and nothing waits.
  void renew();

 private:
  using Clock = std::chrono::steady_clock;

  bool have_thread();
  void work();
  void offer_if_idle(std::unique_lock<std::mutex>&);
  static void do_or_drop(PlanningJob&);

  std::atomic<bool> prepared_{false}, announced_{false};  // announced: a handler runs at the end of the process
  std::mutex mutex_;                                      // of all below
  std::condition_variable changed_;
  std::deque<std::shared_ptr<PlanningJob>> jobs_;
  std::shared_ptr<PlanningJob> running_;
  std::uint64_t added_ = 0, done_ = 0;
  std::atomic<bool> ending_{false};
  std::optional<Clock::time_point> idle_at_;  // if nothing is freed until then; none: there is nothing to offer
  std::uint64_t freed_ = 0;                   // pieces, when that was set
  std::thread thread_;                        // joinable: it is there
  pid_t process_ = 0;                         // that started it
};

}  // namespace reprise::internal
