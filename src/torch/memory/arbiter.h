// The arbiter: one lock for all values of all recordings, and the order of locks in a process.
//
// Whatever others lock comes first: a generator, Python's interpreter, a pool of buffers, an allocator. Then come the
// registration of kernels (interception.h), the list of sessions that found their steps by themselves (automatic.h) and
// what is known about places of checkpoint(), which may be held by those who wait for the arbiter; then the
// arbiter, and below it the small locks of the heap, the planning queue and the operator table, under which nothing of
// others happens at all. At a fork all of them are taken, in this order (forks.h). An allocation may wait for the
// arbiter while its caller holds any lock of others. So a thread that holds the arbiter never waits for such a lock:
//
// - no operator runs, nothing is allocated from LibTorch, and no function of the user's is called;
// - whatever may do that is left to `after`, which runs it when the lock is free: reading what an accelerator computed,
//   giving copies to a tier, and dropping a handle that may be the last one (`discard`), because that may call a
//   deleter of from_blob or free an object of Python's.
//
// A function that takes a `const Arbiter&` is called under the lock, and the parameter proves it. Classes whose header
// says "Under the arbiter's lock" are used under it as a whole. All other functions are called without it, and those
// that would wait for others check that (`expect_free`).
//
// Freeing memory under the arbiter calls back into it, so a thread may take it again.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace reprise::internal {

class Arbiter {
 public:
  // As std::mutex, and a few instructions long where no other thread waits.
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

  // Takes the lock, or notes that this thread has it. An operator does so several times, so this is short where it is
  // free.
  Arbiter() {
    Arbiter*& here = outermost_;
    if (here) return;
    if (!mutex_.try_lock()) wait();
    here = this;
    taken_ = &here;
  }
  // Releases the lock if this one took it, and runs what was left for then. Errors of that are dropped: it has noted
  // them where they are asked for (SavedTensor::unread).
  ~Arbiter() {
    if (!taken_) return;
    release();
    if (!after_.empty()) (void)run(after_);
  }
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  // Does what the destructor does, before the scope ends, and throws what the first of the work threw. Without effect
  // on one that did not take the lock: an outer one has it still.
  void unlock();

  // Sets how to wait where the lock is not free: nullptr, the default, just waits. The thread that holds it may need a
  // lock of another language, which the one that waits may have; the binding of that language knows how to release it.
  static void wait_with(void (*)(Mutex&));

  // Returns true if this thread holds the lock.
  [[nodiscard]] static bool held() { return outermost_ != nullptr; }

  // Runs the work as soon as this thread does not hold the arbiter: at once if it does not, and otherwise when the
  // outermost one has released the lock, in the order of the calls, also while an exception leaves the scope. By then
  // other threads may have changed anything. Work may take the lock again: what it leaves for later itself runs when it
  // releases that, so memory that a scope frees is free when the scope ends. Where nothing is held, errors are dropped.
  template <class Work>
  static void after(Work work) {
    auto kept = std::make_unique<Work>(std::move(work));
    const Left left{[](void* what) { (*std::unique_ptr<Work>(static_cast<Work*>(what)))(); }, kept.get()};
    if (outermost_) outermost_->after_.push_back(left);
    (void)kept.release();
    if (!outermost_) (void)run({&left, 1});
  }
  // Drops a handle in this way.
  static void discard(c10::Storage&& storage) {
    if (!storage) return;
    if (Arbiter* const holder = outermost_) {
      holder->after_.push_back({drop, storage.unsafeGetStorageImpl()});
      (void)storage.unsafeReleaseStorageImpl();
    } else {
      storage = c10::Storage();
    }
  }
  // Drops anything else that may have such handles in it.
  template <class T>
  static void discard_all(T&& things) {
    if (held()) after([dropped = std::decay_t<T>(std::forward<T>(things))] {});
  }

  // Ends the program in a debug build, naming what it is called before, if this thread holds the arbiter. Called where
  // something of others is about to be waited for, or called.
  static void expect_free(const char* before_what);

  // Holds the lock during fork(), which copies only the thread that calls it. In between, this thread may use it as
  // ever: handlers of others may run.
  static void lock_for_fork();
  static void unlock_after_fork();

 private:
  struct Left {
    void (*run)(void* what);  // once, and what it is run on is gone then
    void* what;
  };

  static void wait();
  static void drop(void* storage);
  void release() {
    *std::exchange(taken_, nullptr) = nullptr;
    mutex_.unlock();
  }
  // Returns what the first of them threw.
  [[nodiscard]] static std::exception_ptr run(c10::ArrayRef<Left>) noexcept;

  // Constant from the start and never destroyed: tensors are made before main and outlive it.
  static_assert(std::is_trivially_destructible_v<Mutex>);
  static constinit Mutex mutex_;
  static std::atomic<void (*)(Mutex&)> wait_for_;
  // The one that took the lock on this thread; a pointer, which is there as long as the thread is.
  static constinit thread_local Arbiter* outermost_;

  Arbiter** taken_ = nullptr;        // the pointer of this thread, if this one took the lock
  c10::SmallVector<Left, 4> after_;  // of the outermost one
};

}  // namespace reprise::internal
