#include "torch/session/thread_state.h"

#include "torch/libtorch/of_thread.h"
#include "torch/memory/arbiter.h"
#include "torch/session/session_state.h"

namespace reprise::internal {

ThreadState& this_thread() {
  return of_thread<ThreadState>();
}

bool has_no_place(const ThreadState& here) {
  const bool none = here.seeks_place == SeeksPlace::from_start || here.seeks_place == SeeksPlace::in_the_middle;
  return none && here.source.get() == here.step;
}

bool complete_period() {
  ThreadState& here = this_thread();
  const Arbiter lock;
  std::shared_ptr<Recording> over = std::move(here.recording);
  here.recording.reset();
  if (!over) return false;
  const bool complete = over->went_back();
  if (complete && here.source) here.source->end_period(*over);
  over->end();
  Arbiter::discard_all(std::move(over));
  return complete;
}

void begin_period_if_over() {
  ThreadState& here = this_thread();
  if (here.recording && (here.recording->in_backward() || !here.recording->values().pending().is_over())) return;
  end_period();
  if (!here.source || has_no_place(here)) return;  // the next step has begun, and is not recorded
  here.source->ask_device();
  const Arbiter lock;
  here.recording = here.source->begin_period();
}

void end_period() {
  if (complete_period() && this_thread().period_ended) this_thread().period_ended();
}

}  // namespace reprise::internal
