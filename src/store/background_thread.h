// A thread with tasks of others. It starts with the first thing there is to do.
//
// Tasks are done one after the other, in the order in which they came. Tasks that need room in a memory tier come
// behind all others, because those may make it: one that finds no room waits, and those behind it wait with it, until
// the tier changes.
//
// In the child of a fork there is no thread until there is something to do again, or somebody waits. What was being
// done is the next thing to do.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "reprise/export.h"
#include "store/ledger.h"

namespace reprise::internal {

class REPRISE_EXPORT BackgroundThread {
 public:
  using Task = std::function<void()>;
  using TaskForRoom = std::function<bool()>;  // returns false if there is no room now

  explicit BackgroundThread(Ledger& memory) : memory_(memory) {}
  ~BackgroundThread();  // finishes what it is doing, and leaves the rest
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  void add(Task);
  void add_for_room(std::string key, TaskForRoom);
  // Takes back tasks for room with this key. One that is being done is not tried again.
  void cancel(const std::string& key);
  // Takes back all that has not begun.
  void cancel_all();
  // Waits until there is nothing to do, or only tasks for which there was no room at some time after the call. Throws
  // what the first of the other tasks threw since the last call.
  void wait();

  // See store_forks.h.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

 private:
  struct ForRoom {
    std::string key;
    TaskForRoom task;
  };

  void have_thread();
  void run();
  void wake();
  void do_next(std::unique_lock<std::mutex>&);
  [[nodiscard]] bool try_next_for_room(std::unique_lock<std::mutex>&);

  Ledger& memory_;
  std::mutex mutex_;  // of all below; not held while a task is done
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::deque<ForRoom> for_room_;
  Task current_;                // what is being done; empty: nothing, or a task for room
  ForRoom current_for_room_;    // likewise
  bool busy_ = false;           // one of them is
  bool cancelled_ = false;      // the one for room need not be tried again
  std::uint64_t asked_ = 0;     // by `wait`, whether there is room for the next one; numbered
  std::uint64_t answered_ = 0;  // there is not
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;  // joinable: it is there
};

}  // namespace reprise::internal
