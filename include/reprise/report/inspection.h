// An inspection lists what is in a trace: how much of everything, what sets the peak, and what is worth evicting.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reprise/export.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/trace.h"

namespace reprise {

// What is live at the moment that sets the floor, whatever a plan does.
struct FloorParts {
  Bytes needed = 0;     // values that the moment reads
  Bytes made = 0;       // its results
  Bytes workspace = 0;  // live only while it runs; in backward gradients that it is given and makes are among it
  Bytes held = 0;       // other values that the program holds
  Bytes fixed = 0;      // other values that are needed later and can neither be replayed nor put into a tier
  Bytes other = 0;      // other bytes: parameters, gradients and everything that Reprise cannot evict
};

struct Inspection {
  std::string name;  // of the trace

  // Of the moments, those that run operators and those that are events (Trace::is_event).
  std::size_t operators = 0, moments = 0, events = 0, values = 0;
  std::size_t outside = 0;  // values without a maker

  Bytes value_bytes = 0;    // of all values together
  Bytes outside_bytes = 0;  // of those without a maker
  Bytes largest_other = 0;  // the most bytes that are live for other reasons at any moment
  Bytes keep_everything_peak = 0;
  Blocker floor;           // no plan has a smaller peak
  FloorParts floor_parts;  // their sum is the floor

  double cost = 0;        // of running every moment once
  double event_cost = 0;  // the events' part of it, which no plan can repeat

  // The moment at which keeping everything has most bytes live.
  struct Peak {
    Id moment = 0;
    Bytes bytes = 0;
    Bytes other = 0, workspace = 0;
    std::vector<Id> values;  // resident then, largest first
  };
  std::optional<Peak> peak;  // empty: the trace has no moments

  // A value that could be evicted between two uses, if everything else is kept as long as it is needed.
  struct Candidate {
    Id value = 0;
    Id from = 0, until = 0;  // the longest stretch of moments without a need and not held, both included
    double unused = 0;       // the cost of the moments that run in that stretch
    double recompute =
        0;  // the cost of replaying it at the end, with everything that is gone by then and needed for it
    std::size_t replays = 0;  // the number of operators to replay
    bool at_peak = false;     // true if evicting it lowers the peak of the live bytes
    [[nodiscard]] double worth(
        const Trace&) const;  // bytes * unused / recompute; infinite if recomputing costs nothing
  };
  std::vector<Candidate> worth_most;  // at most ten, best first

  // Values that can neither be replayed nor put into a tier, so that they stay as long as they are needed; largest
  // first.
  std::vector<Id> fixed;
  Bytes fixed_bytes = 0;
};

[[nodiscard]] REPRISE_EXPORT Inspection inspect(const Trace&);

// Returns the inspection as text for a terminal.
[[nodiscard]] REPRISE_EXPORT std::string to_text(const Trace&, const Inspection&);

}  // namespace reprise
