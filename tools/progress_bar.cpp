#include "progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace reprise::tools {
namespace {

constexpr int bar_columns = 24;
constexpr auto redraw_after = std::chrono::milliseconds(100);

bool on_terminal() {
  const char* const kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && kind && std::string_view(kind) != "dumb";
}

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void show(std::string_view line) {
  fmt::print(stderr, "\r\x1b[2K{}", line);
  std::fflush(stderr);
}

}  // namespace

ProgressBar::ProgressBar(std::optional<double> time_limit, const std::atomic<bool>* cancel)
    : time_limit_(time_limit), cancel_(cancel) {
  if (on_terminal()) thread_ = std::thread([this] { run(); });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
  show("");
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
  const std::size_t room = terminal_columns() - 1;
  const std::string hint = *cancel_ ? "  stopping" : "  (Ctrl-C to stop)";
  if (line.size() + hint.size() <= room) line += hint;
  line.resize(std::min(line.size(), room));
  show(line);
}

}  // namespace reprise::tools
