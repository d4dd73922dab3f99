// Makes the plans of a chain: while the chain waits, or on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "chain/pass_actions.h"
#include "reprise/chain/schedule.h"

namespace reprise::internal {

class PassPlanner {
 public:
  PassPlanner() = default;
  ~PassPlanner() { discard(); }
  PassPlanner(const PassPlanner&) = delete;
  PassPlanner& operator=(const PassPlanner&) = delete;

  void set_in_background(bool on) { in_background_ = on; }
  // Sets a function that is called with the share of the time that planning has spent. What the function throws ends
  // planning.
  void set_progress(std::function<void(double)> progress) { progress_ = std::move(progress); }

  // Returns a plan. If plans are made in the background, it is the first one that is found, and the other one comes
  // later. A plan for this `once`, which no other pass will use, is waited for, and what is being made in the
  // background for others goes on.
  [[nodiscard]] std::shared_ptr<const ChainPlan> make(const SchedulePointer&, const ChainForm&, bool once = false);
  // Returns the plan that was made in the background since, once. Null: there is none, or none yet.
  [[nodiscard]] std::shared_ptr<const ChainPlan> take();
  // Discards what is being made in the background, because the settings have changed.
  void discard();
  // Waits until what is being made in the background is there.
  void wait();
  // Ends planning soon, with the best plan so far. May be called from any thread.
  void cancel() {
    cancel_.store(true, std::memory_order_relaxed);
    cancel_background_.store(true, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static std::shared_ptr<const ChainPlan> plan(const Schedule&, const ChainForm&, const ChainPlanning&);
  [[nodiscard]] std::shared_ptr<const ChainPlan> make_now(const Schedule&, const ChainForm&, bool at_once);
  void start(SchedulePointer, const ChainForm&);

  std::function<void(double)> progress_;
  bool in_background_ = false;
  std::atomic<bool> cancel_ = false;

  std::thread thread_;
  std::atomic<bool> cancel_background_ = false;
  std::atomic<bool> done_ = false;         // by the thread
  std::shared_ptr<const ChainPlan> made_;  // null: there is no plan, or it threw, and so will the next pass
};

}  // namespace reprise::internal
