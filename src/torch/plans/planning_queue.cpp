#include "torch/plans/planning_queue.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "plan/preparation.h"
#include "torch/memory/heap.h"

namespace reprise::internal {
namespace {

constexpr auto idle_after = std::chrono::milliseconds(500);  // after a step

// Signals are for threads of the program: a handler may call exit(), which waits for this one.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// A search takes much for a short time, and nothing on this thread wants it soon. malloc_trim leaves the last free
// bytes of a thread's memory resident: a block that covers them loses its pages before it is freed.
void give_back_what_was_freed() {
  constexpr std::size_t covering = 16 << 20;  // less than what malloc asks the system for by itself
  if (void* const block = std::malloc(covering)) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto start = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t first = (start + page - 1) & ~(page - 1), end = (start + covering) & ~(page - 1);
    madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
    std::free(block);
  }
  malloc_trim(0);
}

}  // namespace

Planning& Planning::of_process() {
  static auto& one = *new Planning;
  return one;
}

// Without the lock: what is loaded here may be waiting for a fork, and a fork for the lock. Two threads may come here
// at once; the end is announced when the first of them is done.
void Planning::prepare() {
  if (prepared_) return;
  prepare_planning();
  if (!prepared_.exchange(true)) announced_ = std::atexit([] { Planning::of_process().end(); }) == 0;
}

std::uint64_t Planning::add(std::shared_ptr<PlanningJob> job) {
  {
    const std::scoped_lock lock(mutex_);
    if (!ending_ && have_thread()) {
      jobs_.push_back(std::move(job));
      changed_.notify_all();
      return ++added_;
    }
  }
  job->dropped();
  return 0;
}

void Planning::step_ended() {
  constexpr Bytes much = 32 << 20;
  if (heap::cached() < much) return;
  const std::scoped_lock lock(mutex_);
  if (ending_ || !have_thread()) return;
  freed_ = heap::freed();
  const bool sleeps = !idle_at_;
  idle_at_ = Clock::now() + idle_after;
  if (sleeps) changed_.notify_all();
}

void Planning::wait(std::uint64_t job) {
  std::unique_lock lock(mutex_);
  if (done_ >= job || ending_ || !have_thread()) return;
  changed_.wait(lock, [&] { return done_ >= job || ending_; });
}

bool Planning::wait(std::uint64_t job, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  if (done_ >= job || ending_ || !have_thread()) return true;
  return changed_.wait_for(lock, most, [&] { return done_ >= job || ending_; });
}

std::uint64_t Planning::last() {
  const std::scoped_lock lock(mutex_);
  return added_;
}

void Planning::end() {
  std::deque<std::shared_ptr<PlanningJob>> waiting;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    waiting.swap(jobs_);
    if (running_) running_->cancel();
    changed_.notify_all();
  }
  // The child of something like fork() that calls no handlers has a copy of the object, and no thread.
  if (thread_.joinable() && process_ == getpid() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
  for (const auto& job : waiting) job->dropped();
}

void Planning::renew() {
  // Not destroyed before: that would wait for those who waited on it, and end the process for a thread that nobody
  // has joined.
  new (&changed_) std::condition_variable;
  new (&thread_) std::thread;
  if (running_) jobs_.push_front(std::move(running_));
  done_ = added_ - jobs_.size();
  mutex_.unlock();
}

// With the lock. False: nothing was prepared, or the system has no thread or no memory for us.
bool Planning::have_thread() {
  if (thread_.joinable()) return true;
  if (!announced_) return false;
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { work(); });
  } catch (const std::exception&) {
    return false;
  }
  process_ = getpid();
  return true;
}

void Planning::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_wanted = [this] { return ending_ || !jobs_.empty(); };
    if (const auto until = idle_at_; !until) {
      changed_.wait(lock, [&] { return is_wanted() || idle_at_; });
    } else if (!changed_.wait_until(lock, *until, is_wanted)) {
      offer_if_idle(lock);
    }
    if (ending_) return;
    if (jobs_.empty()) continue;
    running_ = std::move(jobs_.front());
    jobs_.pop_front();
    PlanningJob& job = *running_;
    lock.unlock();
    do_or_drop(job);
    lock.lock();
    std::shared_ptr<PlanningJob> over = std::move(running_);
    lock.unlock();
    over.reset();  // perhaps with a session, and with tensors
    give_back_what_was_freed();
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

void Planning::offer_if_idle(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  if (now < *idle_at_) return;  // a step has ended meanwhile
  if (const std::uint64_t freed = heap::freed(); freed != freed_) {
    freed_ = freed;
    idle_at_ = now + idle_after;
    return;
  }
  idle_at_.reset();
  lock.unlock();
  heap::offer(ending_);
  lock.lock();
}

void Planning::do_or_drop(PlanningJob& job) {
  try {
    if (job.still_wanted()) return job.run();
  } catch (...) {  // out of memory: only the job can be informed
  }
  job.dropped();
}

}  // namespace reprise::internal
