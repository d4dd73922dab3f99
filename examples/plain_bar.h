// A progress bar for a terminal. Where stderr is none, it stays silent.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

class ProgressBar {
 public:
  explicit ProgressBar(double total) : total_(total) {}
  ~ProgressBar() {
    if (shown_) std::fprintf(stderr, "\r%*s\r", 100, "");
  }

  // Draws at most ten times a second.
  void show(double done, const std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    const auto filled = static_cast<std::size_t>(30 * std::clamp(done / total_, 0.0, 1.0));
    std::fprintf(stderr, "\r[%s%s] %3.0f %%  %-60.60s", std::string(filled, '#').c_str(),
                 std::string(30 - filled, '.').c_str(), 100 * done / total_, text.c_str());
  }

 private:
  const double total_;
  const bool terminal_ = isatty(STDERR_FILENO);
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};
