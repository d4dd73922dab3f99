#include "torch/record/executor.h"

#include <span>
#include <string>

#include "torch/evict/far_fingerprints.h"
#include "torch/memory/arbiter.h"
#include "torch/record/follower.h"
#include "torch/replay/replayer.h"

namespace reprise::internal {
namespace {

void drop(Recording& recording, Id value, bool needed_again) {
  if (needed_again && recording.rules().has_tier()) finish_put_for_plan(recording, value);
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
  recording.rules().settle_tiers();
  for (const Script::Step& step : steps) execute(recording, script, step);
} catch (const std::exception& error) {
  const Arbiter lock;
  recording.rules().counters().note(std::string("the plan could not be executed: ") + error.what());
  recording.drop_plan();
  if (const auto& period = recording.period(); period && !period->given) period->drop_plan();
}

// Whether this moment is the one that the script was made for, if its recipe was written only now.
bool is_expected(const Recording& recording, const Script& script, Id moment) {
  if (script.recipes.empty() || recording.course().following()) return true;
  const auto& moments = recording.journal().seen().moments;
  if (static_cast<std::size_t>(moment) >= moments.size()) return false;
  const Id op = moments[moment].op;
  if (op == no_operator) return script.recipes[moment] == 0;
  return script.recipes[moment] == recording.course().recipes().fingerprint_of(op);
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
  if (!is_expected(recording, *script, moment)) {
    const Arbiter lock;
    diverge(recording, "moment " + std::to_string(moment) + " is not what it was in the rehearsal");
    return;
  }
  execute(recording, *script, script->steps_after(moment));
}

}  // namespace reprise::internal
