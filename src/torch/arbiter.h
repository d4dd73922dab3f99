// The arbiter: one lock for all values of all recordings, and the order of locks in a process.
//
// Whatever others lock comes first: a generator, Python's interpreter, a pool of buffers, an allocator. Then come the
// registration of kernels (interception.h), the list of sessions that found their steps by themselves (automatic.h) and
// what is known about sequences (checkpoint_sequential), which may be held by those who wait for the arbiter; then the
// arbiter, and below it the small locks of the heap, the planning queue and the operator table, under which nothing of
// others happens at all. At a fork all of them are taken, in this order (forks.h). An allocation may wait for the
// arbiter while its caller holds any lock of others. So nobody may wait for such a lock while holding the arbiter:
//
// - no operator runs, nothing is allocated from LibTorch, and no function of the user's is called;
// - a handle that may be the last one is not dropped but put aside with `discard`: what it frees (a deleter of
//   from_blob, an object of Python's) is freed when the lock is free.
//
// Freeing memory under the arbiter calls back into it, so a thread may take it again.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace reprise::internal {

class Arbiter {
 public:
  Arbiter();
  ~Arbiter();
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  // How to wait for it where it is not free: nullptr, the default, just waits. Somebody may hold it who needs a lock of
  // another language's, which whoever waits may have in hand; that language's binding knows how to let go of it.
  static void wait_with(void (*)(std::mutex&));

  // Whether this thread holds it.
  [[nodiscard]] static bool held();

  // Drops the handle as soon as this thread does not hold the arbiter: at once if it does not.
  static void discard(c10::Storage);
  // The same for anything else that may have such handles in it.
  template <class T>
  static void discard_all(T&& things) {
    if (held()) put_aside(std::make_shared<std::decay_t<T>>(std::forward<T>(things)));
  }

  // Called where something of others is about to be waited for, or called. A debug build ends the program, and names
  // it, if this thread holds the arbiter.
  static void expect_free(const char* before_what);

  // fork() copies only the thread that calls it: no other may hold the arbiter then. In between, this thread may use
  // it as ever: handlers of others may run.
  static void lock_for_fork();
  static void unlock_after_fork();

 private:
  static void put_aside(std::shared_ptr<void>);

  c10::SmallVector<c10::Storage, 4> discarded_;        // of the outermost one
  std::vector<std::shared_ptr<void>> discarded_more_;  // likewise
};

}  // namespace reprise::internal
