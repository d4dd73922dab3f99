// Regions of this thread in which what autograd saves is evicted at once (reprise/torch/checkpoint.h).
#pragma once

#include "reprise/trace/trace.h"

namespace reprise::internal {

class RecordingContext;

struct Regions {
  int open = 0;                      // one inside the other
  Bytes evicted = 0;                 // in all of them, ever
  RecordingContext* step = nullptr;  // of the session whose step is open: it counts what regions do; nullptr: none is
};

// Those of this thread.
[[nodiscard]] Regions& regions();

}  // namespace reprise::internal
