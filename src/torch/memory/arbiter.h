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

#include <atomic>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace reprise::internal {

class Arbiter {
 public:
  // As std::mutex, and a few instructions long where nobody waits.
  class Mutex {
   public:
    [[nodiscard]] bool try_lock() {
      int found = free;
      return state_.compare_exchange_strong(found, taken, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void lock() {
      if (try_lock()) return;
      while (state_.exchange(waited_for, std::memory_order_acquire) != free) {
        state_.wait(waited_for, std::memory_order_relaxed);
      }
    }
    void unlock() {
      if (state_.exchange(free, std::memory_order_release) == waited_for) state_.notify_one();
    }

   private:
    static constexpr int free = 0, taken = 1, waited_for = 2;  // by others, perhaps
    std::atomic<int> state_ = free;
  };

  // An operator takes it several times, so this is short where it is free.
  Arbiter() {
    Arbiter*& here = outermost_;
    if (here) return;
    if (!mutex_.try_lock()) wait();
    here = this;
    taken_ = &here;
  }
  ~Arbiter() {
    if (!taken_) return;
    *taken_ = nullptr;
    mutex_.unlock();
    // What was put aside is dropped with the members, which may take the lock again.
  }
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  // How to wait for it where it is not free: nullptr, the default, just waits. Somebody may hold it who needs a lock of
  // another language's, which whoever waits may have in hand; that language's binding knows how to let go of it.
  static void wait_with(void (*)(Mutex&));

  // Whether this thread holds it.
  [[nodiscard]] static bool held() { return outermost_ != nullptr; }

  // Drops the handle as soon as this thread does not hold the arbiter: at once if it does not.
  static void discard(c10::Storage&& storage) {
    if (!storage) return;
    if (Arbiter* const holder = outermost_) {
      holder->discarded_.push_back(std::move(storage));
    } else {
      storage = c10::Storage();
    }
  }
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
  static void wait();
  static void put_aside(std::shared_ptr<void>);

  // Constant from the start and never destroyed: tensors are made before main and outlive it.
  static_assert(std::is_trivially_destructible_v<Mutex>);
  static constinit Mutex mutex_;
  static std::atomic<void (*)(Mutex&)> wait_for_;
  // The one that took the lock on this thread; a pointer, which is there as long as the thread is.
  static constinit thread_local Arbiter* outermost_;

  Arbiter** taken_ = nullptr;                          // the pointer of this thread, if this one took the lock
  c10::SmallVector<c10::Storage, 4> discarded_;        // of the outermost one
  std::vector<std::shared_ptr<void>> discarded_more_;  // likewise
};

}  // namespace reprise::internal
