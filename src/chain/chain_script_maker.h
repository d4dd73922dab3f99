// Makes the scripts of a chain: while the chain waits, or on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "chain/pass.h"
#include "reprise/chain/schedule.h"

namespace reprise::internal {

class ChainScriptMaker {
 public:
  ChainScriptMaker() = default;
  ~ChainScriptMaker() { forget(); }
  ChainScriptMaker(const ChainScriptMaker&) = delete;
  ChainScriptMaker& operator=(const ChainScriptMaker&) = delete;

  void in_background(bool on) { in_background_ = on; }
  // Sets a function that is told the share of the time that planning has spent. What it throws ends planning.
  void progress(std::function<void(double)> progress) { progress_ = std::move(progress); }

  // Returns a script. If it is to be made in the background, it is the first one that is found, and the other one comes
  // later. A script for this `once`, which no other pass will use, is waited for, and what is being made in the
  // background for others goes on.
  [[nodiscard]] std::shared_ptr<const ChainScript> make(const SchedulePointer&, const ChainForm&, bool once = false);
  // Returns the script that was made in the background since, once. Null: there is none, or none yet.
  [[nodiscard]] std::shared_ptr<const ChainScript> take();
  // Forgets what is being made in the background: the settings are others now.
  void forget();
  void wait();
  // From any thread: whoever is planning ends soon, with the best plan so far.
  void cancel() {
    cancel_.store(true, std::memory_order_relaxed);
    cancel_background_.store(true, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static std::shared_ptr<const ChainScript> plan(const Schedule&, const ChainForm&, const ChainPlanning&);
  [[nodiscard]] std::shared_ptr<const ChainScript> make_now(const Schedule&, const ChainForm&, bool at_once);
  void start(SchedulePointer, const ChainForm&);

  std::function<void(double)> progress_;
  bool in_background_ = false;
  std::atomic<bool> cancel_ = false;

  std::thread thread_;
  std::atomic<bool> cancel_background_ = false;
  std::atomic<bool> done_ = false;           // by the thread
  std::shared_ptr<const ChainScript> made_;  // null: there is no plan, or it threw, and so will the next pass
};

}  // namespace reprise::internal
