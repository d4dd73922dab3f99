#include "store/store_forks.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace reprise::internal {
namespace {

// There before everything and never destroyed: stores may be global.
constinit std::mutex mutex;  // of the list
constinit ToldOfForks* first = nullptr;
constinit std::atomic<std::uint64_t> forks_so_far = 0;

void before() {
  mutex.lock();
  ToldOfForks::tell_all(&HasLocks::before_fork);
}

void in_parent() {
  ToldOfForks::tell_all(&HasLocks::after_fork_in_parent);
  mutex.unlock();
}

void in_child() {
  ++forks_so_far;
  ToldOfForks::tell_all(&HasLocks::after_fork_in_child);
  mutex.unlock();
}

[[maybe_unused]] const int registered = pthread_atfork(before, in_parent, in_child);

}  // namespace

ProcessId ProcessId::now() {
  return {::getpid(), forks_so_far};
}

ToldOfForks::ToldOfForks(HasLocks& about) : about_(about) {
  const std::lock_guard lock(mutex);
  after_ = first;
  if (after_) after_->before_ = this;
  first = this;
}

ToldOfForks::~ToldOfForks() {
  const std::lock_guard lock(mutex);
  (before_ ? before_->after_ : first) = after_;
  if (after_) after_->before_ = before_;
}

void ToldOfForks::tell_all(void (HasLocks::*what)()) {
  for (ToldOfForks* one = first; one; one = one->after_) (one->about_.*what)();
}

}  // namespace reprise::internal
