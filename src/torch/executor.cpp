#include "torch/executor.h"

#include <span>

#include "torch/arbiter.h"
#include "torch/far_fingerprints.h"
#include "torch/replayer.h"

namespace reprise::internal {
namespace {

void drop(Recording& recording, Id value, bool needed_again) {
  if (needed_again && recording.rules().disk()) finish_put_for_plan(recording, value);
  {
    const Arbiter lock;
    if (PlanRun* const plan = recording.plan()) plan->drop(value);
    if (needed_again) {
      recording.values().forget(value);
    } else {
      recording.values().release(value);
    }
  }
  read_fingerprints(recording);
}

void execute(Recording& recording, const Script& script, const Script::Step& step) {
  switch (step.kind) {
    case Script::Step::Kind::replay: {
      const Script::Replay& replay = script.replays[step.target];
      return replay_for_plan(recording, replay.operators, replay.outputs);
    }
    case Script::Step::Kind::drop: return drop(recording, step.target, true);
    case Script::Step::Kind::end: return drop(recording, step.target, false);
    case Script::Step::Kind::pack: {
      const Arbiter lock;
      (void)recording.values().pack(step.target, *script.forms[step.target]);
      return;
    }
    case Script::Step::Kind::unpack: return unpack_for_plan(recording, step.target);
    case Script::Step::Kind::unpack_last: {
      unpack_for_plan(recording, step.target);
      const Arbiter lock;
      recording.values().drop_packed(step.target);
      return;
    }
    case Script::Step::Kind::put: return put_for_plan(recording, step.target);
    case Script::Step::Kind::get: return get_for_plan(recording, step.target);
  }
}

// LibTorch's callbacks swallow errors. What failed here fails again, where it can be seen, if backward needs it. The
// operators are the same as ever, so the period goes on, and gets another plan.
void execute(Recording& recording, const Script& script, std::span<const Script::Step> steps) try {
  if (const auto& disk = recording.rules().disk()) (void)disk->settle();
  for (const Script::Step& step : steps) execute(recording, script, step);
} catch (const std::exception& error) {
  const Arbiter lock;
  recording.rules().counters().diverged(std::string("the plan could not be executed: ") + error.what());
  recording.drop_plan();
  if (const auto& period = recording.period(); period && !period->given) period->drop_plan();
}

}  // namespace

void execute_before(Recording& recording, Id moment) {
  PlanRun* const plan = recording.plan();
  if (!plan || moment >= plan->script()->moments()) return;
  plan->at(moment);
  const std::shared_ptr<const Script> script = plan->script();
  execute(recording, *script, script->steps_before(moment));
}

void execute_after(Recording& recording, Id moment) {
  PlanRun* const plan = recording.plan();
  if (!plan || moment >= plan->script()->moments()) return;
  const std::shared_ptr<const Script> script = plan->script();
  execute(recording, *script, script->steps_after(moment));
}

}  // namespace reprise::internal
