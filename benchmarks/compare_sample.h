// One step of any side, as ./bench compare sees it.
#pragma once

#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::benchmarks {

struct Sample {
  double seconds = 0;                    // CPU time
  Bytes peak = 0;                        // above the level
  std::optional<double> gradient_error;  // none: every bit is that of a plain step
  bool buffers_equal = true;
};

}  // namespace reprise::benchmarks
