// What ./bench live found out, as data, as one JSON line and as text.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::benchmarks {

// The middle of many ratios.
struct Spread {
  double low = 0, median = 0, high = 0;  // quartiles
};
// Throws for no values.
[[nodiscard]] Spread spread_of(std::vector<double> values);

// All bytes are above the level.
struct Report {
  std::string model, optimizer;
  Bytes level = 0;
  Bytes level_growth = 0;  // of any step of any side since the first plain one: what a session holds between steps
  Bytes budget = 0;
  Bytes plain_peak = 0;
  Bytes peak = 0;  // of all Reprise steps ever run

  Spread ratio;                 // Reprise to plain, after planning
  Spread plain_again;           // plain to plain, measured in the same way: what noise does
  std::optional<Spread> first;  // the first step of a session, several sessions
  int repetitions = 0;
  int steps_per_sample = 1;
  double plain_seconds = 0;  // median of a plain step

  // Of the last step, or the median of the measured ones.
  std::int64_t replays = 0;
  double replay_seconds = 0, pack_seconds = 0;
  Bytes forgotten = 0, packed = 0;

  std::optional<Bytes> promised_peak;
  std::optional<double> promised_overhead;
  std::optional<double> gap;
  bool followed_plan = true;    // every measured step
  double planning_seconds = 0;  // waited for plans, all in all
  std::int64_t divergences = 0, verified = 0;
  bool bit_equal = true;  // every step ever run

  std::optional<Bytes> resident_growth, anonymous_growth;  // of a process that ran only Reprise steps

  struct Region {
    std::int64_t every = 0;
    Spread ratio;
    Bytes peak = 0;
    bool gradients_equal = true, buffers_equal = true;
  };
  std::optional<Region> region;

  // What no session may do.
  [[nodiscard]] bool broken() const { return !bit_equal || peak > budget; }
};

// The result of --smallest.
struct SmallestReport {
  std::string model, optimizer;
  Bytes level = 0;
  Bytes plain_peak = 0;
  Bytes budget = 0;          // the smallest that was kept
  Bytes peak = 0;            // of its steps
  Bytes largest_failed = 0;  // the largest below it that was not
  int points = 0;
  std::string error;  // of the largest failed one
  bool bit_equal = true;
};

void write_json(std::ostream&, const Report&);
void write_text(std::ostream&, const Report&);
void write_json(std::ostream&, const SmallestReport&);
void write_text(std::ostream&, const SmallestReport&);

}  // namespace reprise::benchmarks
