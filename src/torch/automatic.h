// Sessions that find their steps by themselves, for programs that do not know of Reprise. The preloaded library of
// `reprise run` is the only one to begin this.
//
// A thread gets a session of its own with the first tensor that autograd saves on it, so threads that only load data
// cost nothing. Its first step was met in the middle: the budget holds, but its trace is not planned. A step ends when
// backward is done and nothing that autograd saved is pending; the next one begins at once, so the optimizer belongs to
// it, and the budget stays in force until the thread ends.
#pragma once

#include <optional>

#include "reprise/torch/session.h"

namespace reprise::automatic {

// From now on, for all threads. Only once in a process.
void begin(const SessionOptions& options);

[[nodiscard]] bool is_on();

// Autograd saves a tensor on a thread that has no step. Opens one if this has begun.
void meet_thread();

// A period has ended on this thread.
void end_step();

// Of the thread that has taken the most steps: up to the last one that has ended.
struct Outcome {
  Summary summary;
  std::optional<Trace> trace;
  std::optional<Plan> plan;
};
// None: no thread was met yet.
[[nodiscard]] std::optional<Outcome> outcome();

}  // namespace reprise::automatic
