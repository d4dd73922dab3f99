#include "store/background_thread.h"

#include <new>
#include <utility>

namespace reprise::internal {

BackgroundThread::BackgroundThread(Ledger& memory, Work work) : memory_(memory), work_(std::move(work)) {}

BackgroundThread::~BackgroundThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

// With the lock.
void BackgroundThread::have_thread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

// It waits for a change of the memory tier, or for something to do.
void BackgroundThread::wake() {
  memory_.touch();
  changed_.notify_all();
}

void BackgroundThread::prefetch(std::vector<std::string> keys) {
  {
    const std::lock_guard lock(mutex_);
    for (std::string& key : keys) prefetches_.push_back(std::move(key));
    have_thread();
  }
  wake();
}

void BackgroundThread::offload(std::vector<std::string> keys) {
  {
    const std::lock_guard lock(mutex_);
    for (std::string& key : keys) {
      std::erase(prefetches_, key);
      if (busy_ && current_ == key) cancelled_ = true;
      offloads_.push_back(std::move(key));
    }
    have_thread();
  }
  wake();
}

void BackgroundThread::forget_all() {
  {
    const std::lock_guard lock(mutex_);
    prefetches_.clear();
    offloads_.clear();
    cancelled_ = true;
  }
  wake();
}

void BackgroundThread::wait() {
  std::unique_lock lock(mutex_);
  const std::uint64_t question = ++asked_;
  if (!offloads_.empty() || !prefetches_.empty()) have_thread();
  memory_.touch();
  changed_.wait(lock, [&] { return !busy_ && offloads_.empty() && (prefetches_.empty() || answered_ >= question); });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundThread::after_fork_in_child() {
  // Not destroyed before: that would wait for those who waited on it, and end the process for a thread that nobody has
  // joined.
  new (&changed_) std::condition_variable;
  new (&thread_) std::thread;
  if (std::exchange(busy_, false)) {
    if (to_disk_) {
      offloads_.push_front(current_);
    } else if (!cancelled_) {
      prefetches_.push_front(current_);
    }
  }
  mutex_.unlock();
}

void BackgroundThread::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    // Before anything is tried: a change from now on is a reason to try again.
    const Ledger::Version version = memory_.version();
    const std::uint64_t question = asked_;
    if (!offloads_.empty()) {
      offload_next(lock);
    } else if (prefetches_.empty()) {
      changed_.wait(lock);
    } else if (!prefetch_next(lock)) {
      answered_ = question;
      changed_.notify_all();
      lock.unlock();
      (void)memory_.wait_past(version, true);
      lock.lock();
    }
  }
}

void BackgroundThread::offload_next(std::unique_lock<std::mutex>& lock) {
  current_ = std::move(offloads_.front());
  offloads_.pop_front();
  busy_ = to_disk_ = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    work_.offload(current_);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  busy_ = false;
  if (!error_) error_ = error;
  changed_.notify_all();
}

// False if there was no room for it; then it is the next one again.
bool BackgroundThread::prefetch_next(std::unique_lock<std::mutex>& lock) {
  current_ = std::move(prefetches_.front());
  prefetches_.pop_front();
  busy_ = true;
  to_disk_ = false;
  cancelled_ = false;
  lock.unlock();
  bool done = true;
  try {
    done = work_.prefetch(current_);
  } catch (...) {  // it is still on disk, and whoever wants it will see the error
  }
  lock.lock();
  busy_ = false;
  if (!done && !cancelled_) {
    prefetches_.push_front(std::move(current_));
    return false;
  }
  changed_.notify_all();
  return true;
}

}  // namespace reprise::internal
