#include "torch/memory/arbiter.h"

#include <cstdio>
#include <cstdlib>

namespace reprise::internal {
namespace {

Arbiter* of_fork = nullptr;  // held by the thread that forks

}  // namespace

constinit Arbiter::Mutex Arbiter::mutex_;
constinit std::atomic<void (*)(Arbiter::Mutex&)> Arbiter::wait_for_ = nullptr;
constinit thread_local Arbiter* Arbiter::outermost_ = nullptr;

void Arbiter::wait() {
  const auto wait = wait_for_.load(std::memory_order_acquire);
  wait ? wait(mutex_) : mutex_.lock();
}

void Arbiter::wait_with(void (*wait)(Mutex&)) {
  wait_for_ = wait;
}

void Arbiter::unlock() {
  if (!taken_) return;
  release();
  if (const std::exception_ptr first = run(after_)) std::rethrow_exception(first);
}

std::exception_ptr Arbiter::run(c10::ArrayRef<Left> all) noexcept {
  std::exception_ptr first;
  for (const Left& work : all) {
    try {
      work.run(work.what);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  return first;
}

void Arbiter::drop(void* storage) {
  (void)c10::intrusive_ptr<c10::StorageImpl>::reclaim(static_cast<c10::StorageImpl*>(storage));
}

void Arbiter::expect_free([[maybe_unused]] const char* before_what) {
#ifdef REPRISE_CHECK_LOCKS
  if (!outermost_) return;
  std::fprintf(stderr, "reprise: the arbiter is held before %s: a lock of others could be waited for under it\n",
               before_what);
  std::abort();
#endif
}

void Arbiter::lock_for_fork() {
  of_fork = new Arbiter;
}

void Arbiter::unlock_after_fork() {
  delete std::exchange(of_fork, nullptr);
}

}  // namespace reprise::internal
