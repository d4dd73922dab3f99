#include "progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "terminal.h"

namespace reprise::tools {
namespace {

constexpr int bar_columns = 24;
constexpr auto redraw_after = std::chrono::milliseconds(100);

}  // namespace

ProgressBar::ProgressBar(std::optional<double> time_limit, const std::atomic<bool>* cancel)
    : time_limit_(time_limit), cancel_(cancel) {
  if (terminal::is_there()) thread_ = std::thread([this] { run(); });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
  terminal::show("");
}

void ProgressBar::update(double share, std::string text) {
  const std::lock_guard lock(mutex_);
  share_ = share;
  text_ = std::move(text);
}

void ProgressBar::run() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, redraw_after, [this] { return end_; })) draw();
}

void ProgressBar::draw() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double share = std::clamp(time_limit_ ? seconds / *time_limit_ : share_, 0.0, 1.0);
  const int filled = static_cast<int>(std::lround(share * bar_columns));
  std::string line = fmt::format("[{:<{}}] {:3.0f} %  {:.1f} s", std::string(static_cast<std::size_t>(filled), '#'),
                                 bar_columns, 100 * share, seconds);
  if (!text_.empty()) line += "  " + text_;
  // A longer line would wrap and could not be taken back.
  const std::size_t room = terminal::columns() - 1;
  const std::string hint = *cancel_ ? "  stopping" : "  (Ctrl-C to stop)";
  if (line.size() + hint.size() <= room) line += hint;
  line.resize(std::min(line.size(), room));
  terminal::show(line);
}

}  // namespace reprise::tools
