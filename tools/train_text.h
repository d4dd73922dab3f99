// What `reprise train` shows: a line while it works, a table in the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::tools {

struct ShownStep {
  std::int64_t step = 0;  // counted from 1
  float loss = 0;
  Bytes peak = 0;
  std::int64_t replays = 0;
  double seconds = 0;
};

// On a terminal one line that is drawn again after every step, and is gone in the end; else about ten plain lines.
class TrainingProgress {
 public:
  // Of steps first+1..last. Without a budget the bytes are shown as they are.
  TrainingProgress(std::string title, std::int64_t first, std::int64_t last, std::optional<Bytes> budget);
  ~TrainingProgress();
  TrainingProgress(const TrainingProgress&) = delete;
  TrainingProgress& operator=(const TrainingProgress&) = delete;

  void show(const ShownStep&);

 private:
  [[nodiscard]] std::string drawn(const ShownStep&) const;
  [[nodiscard]] std::string plain(const ShownStep&) const;

  const std::string title_;
  const std::int64_t first_, last_;
  const std::optional<Bytes> budget_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "1:05", "1:00:00".
[[nodiscard]] std::string clock_text(double seconds);

// One side of a comparison.
struct Side {
  std::string name;
  std::optional<Bytes> peak;
  std::optional<double> seconds;  // of a step, the median
  std::optional<double> ratio;    // of its time to that of a plain step
  std::optional<float> loss;      // of the last step
  std::string note;               // what there is to know, if anything
};

// A column for each side, a row for each number; then the notes, one line each.
[[nodiscard]] std::string table_of(const std::vector<Side>&, std::int64_t steps);

[[nodiscard]] double median(std::vector<double>);

// A step as a line of JSON, with a line break. `budget` null: none.
[[nodiscard]] std::string metrics_line(const ShownStep&, std::optional<Bytes> budget, bool followed_plan,
                                       double replay_seconds, Bytes packed);

}  // namespace reprise::tools
