#include "torch/arbiter.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <type_traits>

namespace reprise::internal {
namespace {

// Constant from the start and never destroyed: tensors are made before main and outlive it.
static_assert(std::is_trivially_destructible_v<std::mutex>);
constinit std::mutex mutex;

// The one that took the lock on this thread; a pointer, which is there as long as the thread is.
thread_local Arbiter* outermost = nullptr;

Arbiter* of_fork = nullptr;  // held by the thread that forks

std::atomic<void (*)(std::mutex&)> wait_for = nullptr;

}  // namespace

Arbiter::Arbiter() {
  if (outermost) return;
  if (!mutex.try_lock()) {
    const auto wait = wait_for.load(std::memory_order_acquire);
    wait ? wait(mutex) : mutex.lock();
  }
  outermost = this;
}

Arbiter::~Arbiter() {
  if (outermost != this) return;
  outermost = nullptr;
  mutex.unlock();
  // What was put aside is dropped with the members, which may take the lock again.
}

void Arbiter::wait_with(void (*wait)(std::mutex&)) {
  wait_for = wait;
}

bool Arbiter::held() {
  return outermost != nullptr;
}

void Arbiter::discard(c10::Storage storage) {
  if (outermost && storage) outermost->discarded_.push_back(std::move(storage));
}

void Arbiter::put_aside(std::shared_ptr<void> things) {
  outermost->discarded_more_.push_back(std::move(things));
}

void Arbiter::expect_free([[maybe_unused]] const char* before_what) {
#ifdef REPRISE_CHECK_LOCKS
  if (!outermost) return;
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
