#include "train_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "reprise/trace/amount.h"
#include "terminal.h"

namespace reprise::tools {
namespace {

constexpr int bar_columns = 16;
constexpr std::int64_t plain_lines = 10;

std::string bar(double share, int columns) {
  const int filled = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * columns));
  return fmt::format("[{:<{}}]", std::string(static_cast<std::size_t>(filled), '#'), columns);
}

std::string bytes_of(const ShownStep& step, std::optional<Bytes> budget) {
  return budget ? fmt::format("{} of {}", format_bytes(step.peak), format_bytes(*budget)) : format_bytes(step.peak);
}

}  // namespace

// ---- while it works ------------------------------------------------------------------------------------------------

TrainingProgress::TrainingProgress(std::string title, std::int64_t first, std::int64_t last,
                                   std::optional<Bytes> budget)
    : title_(std::move(title)), first_(first), last_(last), budget_(budget), terminal_(terminal::is_there()) {
  if (terminal_) terminal::show(title_ + " ...");
}

TrainingProgress::~TrainingProgress() {
  if (terminal_) terminal::show("");
}

void TrainingProgress::show(const ShownStep& step) {
  if (terminal_) {
    terminal::show(drawn(step));
    return;
  }
  const std::int64_t every = std::max<std::int64_t>(1, (last_ - first_) / plain_lines);
  if (step.step % every != 0 && step.step != first_ + 1 && step.step != last_) return;
  fmt::print(stderr, "{}\n", plain(step));
}

// What matters less is left out where the terminal is narrow.
std::string TrainingProgress::drawn(const ShownStep& step) const {
  const auto done = static_cast<double>(step.step - first_), all = static_cast<double>(last_ - first_);
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::vector<std::string> parts = {
      fmt::format("{} {} {}/{}", title_, bar(done / all, bar_columns), step.step, last_),
      fmt::format("loss {:.4f}", step.loss),
  };
  if (budget_) {
    parts.push_back(fmt::format("{} {}", bar(static_cast<double>(step.peak) / static_cast<double>(*budget_), 10),
                                bytes_of(step, budget_)));
    parts.push_back(fmt::format("{} replays", step.replays));
  } else {
    parts.push_back(bytes_of(step, budget_));
  }
  parts.push_back(clock_text(passed / done * (all - done)) + " left");
  std::string line;
  for (const std::string& part : parts) {
    if (!line.empty() && line.size() + 2 + part.size() >= terminal::columns()) break;
    line += (line.empty() ? "" : "  ") + part;
  }
  line.resize(std::min(line.size(), terminal::columns() - 1));
  return line;
}

std::string TrainingProgress::plain(const ShownStep& step) const {
  std::string line = fmt::format("{}: step {} of {}, loss {:.4f}, {} live at most", title_, step.step, last_, step.loss,
                                 bytes_of(step, budget_));
  if (budget_) line += fmt::format(", {} replays", step.replays);
  return line + fmt::format(", {:.2f} s", step.seconds);
}

std::string clock_text(double seconds) {
  const auto all = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  const std::int64_t hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

// ---- in the end ----------------------------------------------------------------------------------------------------

std::string table_of(const std::vector<Side>& sides, std::int64_t steps) {
  std::string text = fmt::format("{:<22}", "");
  const auto row = [&](const std::string& name, const auto& cell) {
    text += fmt::format("\n{:<22}", name);
    for (const Side& side : sides) text += fmt::format("{:>24}", cell(side));
  };
  for (const Side& side : sides) text += fmt::format("{:>24}", side.name);
  row("peak, everything", [](const Side& side) { return side.peak ? format_bytes(*side.peak) : "-"; });
  row("time of a step", [](const Side& side) {
    if (!side.seconds) return std::string("-");
    return side.ratio ? fmt::format("{:.3f} s ({:.2f}x)", *side.seconds, *side.ratio)
                      : fmt::format("{:.3f} s", *side.seconds);
  });
  row(fmt::format("loss after {} steps", steps),
      [](const Side& side) { return side.loss ? fmt::format("{:.6f}", *side.loss) : std::string("-"); });
  text += "\n";
  for (const Side& side : sides) {
    if (!side.note.empty()) text += fmt::format("{}: {}\n", side.name, side.note);
  }
  return text;
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

std::string metrics_line(const ShownStep& step, std::optional<Bytes> budget, bool followed_plan, double replay_seconds,
                         Bytes packed) {
  nlohmann::ordered_json line{{"step", step.step},
                              {"loss", step.loss},
                              {"seconds", step.seconds},
                              {"peak_bytes", step.peak},
                              {"budget_bytes", nullptr},
                              {"replays", step.replays},
                              {"replay_seconds", replay_seconds},
                              {"packed_bytes", packed},
                              {"followed_plan", followed_plan}};
  if (budget) line["budget_bytes"] = *budget;
  return line.dump() + "\n";
}

}  // namespace reprise::tools
