#include "torch/session/thread_state.h"

#include "torch/libtorch/per_thread.h"
#include "torch/memory/arbiter.h"
#include "torch/session/session_state.h"

namespace reprise::internal {

ThreadState& this_thread() {
  return of_thread<ThreadState>();
}

bool has_no_device(const ThreadState& here) {
  const bool none = here.infers_device == InfersDevice::from_start || here.infers_device == InfersDevice::in_the_middle;
  return none && here.source.get() == here.step;
}

bool complete_pass() {
  ThreadState& here = this_thread();
  const Arbiter lock;
  std::shared_ptr<Recording> over = std::move(here.recording);
  here.recording.reset();
  if (!over) return false;
  const bool complete = over->went_back();
  if (complete && here.source) here.source->end_pass(*over);
  over->end();
  Arbiter::discard_all(std::move(over));
  return complete;
}

void begin_pass_if_over() {
  ThreadState& here = this_thread();
  if (here.recording && (here.recording->in_backward() || !here.recording->values().pending().is_over())) return;
  end_pass();
  if (!here.source || has_no_device(here)) return;  // the next step has begun, and is not recorded
  here.source->ask_device();
  const Arbiter lock;
  here.recording = here.source->begin_pass();
}

void end_pass() {
  if (complete_pass() && this_thread().pass_ended) this_thread().pass_ended();
}

}  // namespace reprise::internal
