#include "torch/hooks/steps.h"

#include <malloc.h>

#include <utility>

#include "torch/evict/writes.h"
#include "torch/hooks/recorder.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/arbiter.h"
#include "torch/plans/planning_queue.h"
#include "torch/recipes/library_scopes.h"
#include "torch/session/thread_state.h"
#include "torch/values/open_steps.h"
#include "torch/values/regions.h"

namespace reprise::internal {

void open_step(const std::shared_ptr<SessionState>& session) {
  ThreadState& here = this_thread();
  session->look_for_device();
  session->look_at_devices();
  bool recorded = false, is_first_within_budget = false;
  {
    const Arbiter lock;
    is_first_within_budget = session->is_new() && session->budget() != no_limit;
    recorded = session->begin_step();
  }
  if (is_first_within_budget) malloc_trim(0);  // what was freed before the session would be resident beside its budget
  here.step = session.get();
  regions().step = &session->context();
  here.infers_device = session->has_device() ? InfersDevice::no : InfersDevice::from_start;
  if (recorded) {
    here.source = session;
    watch_operators(Watch::on);
  }
  here.step_start = thread_microseconds();
}

void close_step(SessionState& session) noexcept {
  ThreadState& here = this_thread();
  watch_operators(Watch::off);
  watch_nodes(Watch::off);
  writes::operators_under_way() = 0;
  here.in_compiled_function = here.in_traced = false;
  library_scopes() = 0;
  try {  // the last that was saved may have gone without backward
    if (here.recording && here.recording->values().pending().is_over()) (void)complete_pass();
  } catch (...) {  // out of memory: nothing is learnt from it
  }
  std::shared_ptr<Recording> unfinished = std::move(here.recording);
  here.recording.reset();
  here.source.reset();
  here.step = nullptr;
  regions().step = nullptr;
  here.infers_device = InfersDevice::no;
  {
    const Arbiter lock;
    if (unfinished) unfinished->end();
    Arbiter::discard_all(std::move(unfinished));
    session.end_step((thread_microseconds() - here.step_start) * 1e-6);
  }
  session.context().settle_all_tiers();
  Planning::of_process().step_ended();
}

void keep_step_of_this_thread() {
  ThreadState& here = this_thread();
  OpenSteps::of_process().keep_only(here.step ? &here.step->context() : nullptr);
  if (here.step) here.step_start = thread_microseconds();
}

}  // namespace reprise::internal
