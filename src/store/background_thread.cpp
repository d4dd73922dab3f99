#include "store/background_thread.h"

#include <new>
#include <utility>

namespace reprise::internal {

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

void BackgroundThread::add(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    have_thread();
  }
  wake();
}

void BackgroundThread::add_for_room(std::string key, TaskForRoom task) {
  {
    const std::lock_guard lock(mutex_);
    for_room_.push_back({std::move(key), std::move(task)});
    have_thread();
  }
  wake();
}

void BackgroundThread::cancel(const std::string& key) {
  const std::lock_guard lock(mutex_);
  std::erase_if(for_room_, [&](const ForRoom& one) { return one.key == key; });
  if (busy_ && !current_ && current_for_room_.key == key) cancelled_ = true;
}

void BackgroundThread::cancel_all() {
  {
    const std::lock_guard lock(mutex_);
    for_room_.clear();
    tasks_.clear();
    cancelled_ = true;
  }
  wake();
}

void BackgroundThread::wait() {
  std::unique_lock lock(mutex_);
  const std::uint64_t question = ++asked_;
  if (!tasks_.empty() || !for_room_.empty()) have_thread();
  memory_.touch();
  changed_.wait(lock, [&] { return !busy_ && tasks_.empty() && (for_room_.empty() || answered_ >= question); });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundThread::after_fork_in_child() {
  // Not destroyed before: that would wait for those who waited on it, and end the process for a thread that nobody has
  // joined.
  new (&changed_) std::condition_variable;
  new (&thread_) std::thread;
  if (std::exchange(busy_, false)) {
    if (current_) {
      tasks_.push_front(std::exchange(current_, nullptr));
    } else if (!cancelled_) {
      for_room_.push_front(current_for_room_);
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
    if (!tasks_.empty()) {
      do_next(lock);
    } else if (for_room_.empty()) {
      changed_.wait(lock);
    } else if (!try_next_for_room(lock)) {
      answered_ = question;
      changed_.notify_all();
      lock.unlock();
      (void)memory_.wait_past(version, true);
      lock.lock();
    }
  }
}

void BackgroundThread::do_next(std::unique_lock<std::mutex>& lock) {
  current_ = std::move(tasks_.front());
  tasks_.pop_front();
  busy_ = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    current_();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  Task done = std::exchange(current_, nullptr);
  busy_ = false;
  if (!error_) error_ = error;
  changed_.notify_all();
}

// Returns false if there was no room for it; then it is the next one again.
bool BackgroundThread::try_next_for_room(std::unique_lock<std::mutex>& lock) {
  current_for_room_ = std::move(for_room_.front());
  for_room_.pop_front();
  busy_ = true;
  cancelled_ = false;
  lock.unlock();
  bool done = true;
  try {
    done = current_for_room_.task();
  } catch (...) {  // it is still on disk, and whoever wants it will see the error
  }
  lock.lock();
  busy_ = false;
  if (!done && !cancelled_) {
    for_room_.push_front(std::move(current_for_room_));
    return false;
  }
  changed_.notify_all();
  return true;
}

}  // namespace reprise::internal
