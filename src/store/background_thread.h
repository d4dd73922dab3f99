// The thread of a store: moves values ahead of time. It starts with the first thing there is to do.
//
// Offloads come before prefetches, because they make room. A prefetch that finds no room waits, and those behind it
// wait with it, until the memory tier changes.
//
// In the child of a fork there is no thread until there is something to do again, or somebody waits. What was being
// moved is the next thing to do.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reprise/export.h"
#include "store/ledger.h"

namespace reprise::internal {

class REPRISE_EXPORT BackgroundThread {
 public:
  struct Work {
    std::function<bool(const std::string& key)> prefetch;  // false: there is no room now
    std::function<void(const std::string& key)> offload;
  };

  BackgroundThread(Ledger& memory, Work);
  ~BackgroundThread();  // finishes what it is doing, and leaves the rest
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  void prefetch(std::vector<std::string> keys);
  void offload(std::vector<std::string> keys);  // takes them off the prefetches
  void forget_all();                            // that has not begun
  // Until there is nothing to do, or only prefetches for which there was no room at some time after the call. Throws
  // what the first offload threw since the last call.
  void wait();

  // See store_forks.h.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

 private:
  void have_thread();
  void run();
  void wake();
  void offload_next(std::unique_lock<std::mutex>&);
  [[nodiscard]] bool prefetch_next(std::unique_lock<std::mutex>&);

  Ledger& memory_;
  const Work work_;
  std::mutex mutex_;  // of all below; not held while something is moved
  std::condition_variable changed_;
  std::deque<std::string> offloads_, prefetches_;
  std::string current_;         // key of what is being moved, if busy
  bool busy_ = false;           // something is being moved
  bool to_disk_ = false;        // it is an offload
  bool cancelled_ = false;      // it need not be tried again
  std::uint64_t asked_ = 0;     // by `wait`, whether there is room for the next prefetch; numbered
  std::uint64_t answered_ = 0;  // there is not
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;  // joinable: it is there
};

}  // namespace reprise::internal
