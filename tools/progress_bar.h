// One line on stderr that shows how far a command is. Only on a terminal, and gone when the command prints its result.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace reprise::tools {

class ProgressBar {
 public:
  // With a time limit the bar follows the clock; without, what `update` says. `cancel` is shown as soon as it is set.
  ProgressBar(std::optional<double> time_limit, const std::atomic<bool>* cancel);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // From any thread: the share that is done, and what to say about it.
  void update(double share, std::string text);

 private:
  void run();
  void draw();

  const std::optional<double> time_limit_;
  const std::atomic<bool>* const cancel_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  double share_ = 0;
  std::string text_;
  std::thread thread_;  // runs only on a terminal
};

}  // namespace reprise::tools
