// Regions of this thread in which what autograd saves is forgotten at once (reprise/torch/checkpoint.h).
#pragma once

#include "reprise/trace/trace.h"

namespace reprise::internal {

class Rules;

struct Regions {
  int open = 0;           // one inside the other
  Bytes forgotten = 0;    // in all of them, ever
  Rules* step = nullptr;  // of the session whose step is open: it counts what regions do; nullptr: none is
};

// Those of this thread.
[[nodiscard]] Regions& regions();

}  // namespace reprise::internal
