// Axes: how far they go, and where the round numbers are.
#pragma once

#include <string>
#include <vector>

#include "reprise/plan/curve.h"

namespace reprise::internal {

// Returns the overhead that a full bar or the top of a picture stands for: the largest one, unless it is out of all
// proportion.
[[nodiscard]] double largest_shown_overhead(const Curve&);

// 0, s, 2 s, ... with a round step s (1, 2 or 5 times a power of ten), at most `most` of them, up to `largest`.
struct Ticks {
  double step = 1;
  std::vector<double> at;
};
[[nodiscard]] Ticks round_ticks(double largest, int most);

// The unit in which an axis up to this many bytes has handy numbers: {1048576, "MiB"}.
struct ByteUnit {
  double bytes = 1;
  const char* name = "B";
};
[[nodiscard]] ByteUnit unit_for(Bytes largest);

}  // namespace reprise::internal
