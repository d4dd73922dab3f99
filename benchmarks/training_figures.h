// Figures of measurements of training, and what is computed from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::benchmarks {

// One or more steps of any side.
struct Sample {
  double seconds = 0;                    // CPU time of all of them
  Bytes peak = 0;                        // above the level, the largest
  std::optional<double> gradient_error;  // the largest relative one; none: every bit is that of a plain step
  bool buffers_equal = true;             // BatchNorm's statistics
  double wall = 0;                       // seconds, of all of them

  [[nodiscard]] bool bit_equal() const { return !gradient_error && buffers_equal; }
  // Takes the steps of another one in.
  void add(const Sample&);
};

// The samples of one side.
struct Measured {
  std::vector<double> ratios;  // each against the plain samples around it
  std::vector<double> wall;    // the same in time instead of CPU time
  Sample steps;                // all of them
  std::string failure;         // why there are no ratios; empty: there are
};

// Plain samples, between which the others stand.
struct Plain {
  std::vector<double> seconds;
  Bytes peak = 0;  // above the level
  Measured again;  // plain samples that were measured as if they were another side's: what noise does
};

// The middle of many numbers.
struct Spread {
  double low = 0, median = 0, high = 0;  // quartiles
};
// Throws std::invalid_argument for no values.
[[nodiscard]] Spread spread_of(std::vector<double> values);

// At which shares of the plain peak Reprise is measured, largest first, when rivals have these: at each of them, except
// that one budget serves all that are at most 0.01 above it; between those that are far apart; and below the smallest.
// `quick`: nothing between them, and less below.
[[nodiscard]] std::vector<double> shares_to_measure(std::vector<double> rivals, bool quick);

}  // namespace reprise::benchmarks
