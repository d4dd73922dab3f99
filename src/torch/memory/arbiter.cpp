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

void Arbiter::put_aside(std::shared_ptr<void> things) {
  outermost_->discarded_more_.push_back(std::move(things));
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
