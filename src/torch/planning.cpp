#include "torch/planning.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "plan/highs.h"

namespace reprise {
namespace {

class Planning {
 public:
  // What is loaded before this exists is unloaded after it is gone: jobs use the solver until the process ends.
  Planning() : solver_(solver_available()), thread_([this] { work(); }) {}
  ~Planning() {
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
      jobs_.clear();
    }
    changed_.notify_all();
    thread_.join();
  }

  void add(std::function<void(const std::atomic<bool>&)> job) {
    {
      const std::scoped_lock lock(mutex_);
      jobs_.push_back(std::move(job));
      ++added_;
    }
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == added_ || ending_; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job(ending_);
      job = nullptr;
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void(const std::atomic<bool>&)>> jobs_;
  std::uint64_t added_ = 0, done_ = 0;
  std::atomic<bool> ending_{false};
  const bool solver_;
  std::thread thread_;
};

Planning& planning() {
  static Planning one;
  return one;
}

}  // namespace

void plan_later(std::function<void(const std::atomic<bool>& cancelled)> job) {
  planning().add(std::move(job));
}
void wait_for_planning() {
  planning().wait();
}

}  // namespace reprise
