// Sessions that find their steps by themselves, for programs that do not know of Reprise. The preloaded library of
// `reprise run` is the only one to begin this.
//
// A thread gets a session with the first tensor that autograd saves on it, so threads that only load data cost nothing.
// While it lives the session is its own; when it ends, the next new thread takes the session over, with all it knows.
// So there are never more sessions than threads that trained at the same time.
//
// The first step of a thread was met in the middle: the budget holds, but its trace is not planned. A step ends when
// backward is done and nothing that autograd saved is pending; the next one begins at once, so the optimizer belongs to
// it, and the budget stays in force until the thread ends.
#pragma once

#include <optional>

#include "reprise/torch/session.h"

namespace reprise::internal::automatic {

// Begins, for all threads. Only once in a process. Throws what a session would complain about, but for devices:
// libraries of theirs may not be there yet, and the first thread that is met looks for them.
void begin(const SessionOptions& options);

[[nodiscard]] bool is_on();

// Opens a step if this has begun: autograd saves a tensor on a thread that has none.
void meet_thread();

// Ends the step, because a pass has ended on this thread.
void end_step();

// Of the session that has taken the most steps, up to the last one that has ended. But steps, traces, plans,
// divergences, notes and values that were compared are counted over all sessions, and the peak is the highest of all.
struct Outcome {
  Summary summary;
  std::optional<Trace> trace;
  std::optional<Plan> plan;
};
// Returns what has come out until now. None if no thread was met yet.
[[nodiscard]] std::optional<Outcome> outcome();

// Hold the lock in here during fork(), which copies only the thread that calls it. Comes before the arbiter.
void lock_for_fork();
void unlock_after_fork();

}  // namespace reprise::internal::automatic
