#include "store/store_forks.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace reprise::internal {
namespace {

// Initialized before everything and never destroyed: stores may be global.
constinit std::mutex mutex;  // of the list
constinit ForkSubscription* first = nullptr;
constinit std::atomic<std::uint64_t> forks_so_far = 0;

void before() {
  mutex.lock();
  ForkSubscription::call_all(&HasLocks::before_fork);
}

void in_parent() {
  ForkSubscription::call_all(&HasLocks::after_fork_in_parent);
  mutex.unlock();
}

void in_child() {
  ++forks_so_far;
  ForkSubscription::call_all(&HasLocks::after_fork_in_child);
  mutex.unlock();
}

[[maybe_unused]] const int registered = pthread_atfork(before, in_parent, in_child);

}  // namespace

ProcessId ProcessId::now() {
  return {::getpid(), forks_so_far};
}

ForkSubscription::ForkSubscription(HasLocks& subscriber) : subscriber_(subscriber) {
  const std::lock_guard lock(mutex);
  after_ = first;
  if (after_) after_->before_ = this;
  first = this;
}

ForkSubscription::~ForkSubscription() {
  const std::lock_guard lock(mutex);
  (before_ ? before_->after_ : first) = after_;
  if (after_) after_->before_ = before_;
}

void ForkSubscription::call_all(void (HasLocks::*function)()) {
  for (ForkSubscription* one = first; one; one = one->after_) (one->subscriber_.*function)();
}

}  // namespace reprise::internal
