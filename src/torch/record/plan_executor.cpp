#include "torch/record/plan_executor.h"

#include <span>
#include <string>

#include "torch/memory/arbiter.h"
#include "torch/record/follower.h"
#include "torch/replay/replayer.h"

namespace reprise::internal {
namespace {

void drop(Recording& recording, Id value, bool needed_again) {
  if (needed_again && recording.context().has_tier()) finish_put_for_plan(recording, value);
  const Arbiter lock;
  if (PlanCursor* const plan = recording.plan()) plan->drop(value);
  if (needed_again) {
    recording.values().evict(value);
  } else {
    recording.values().release(value);
  }
}

void execute(Recording& recording, const ExecutablePlan& executable, const ExecutablePlan::Step& step) {
  switch (step.kind) {
    case ExecutablePlan::Step::Kind::replay: {
      const ExecutablePlan::Replay& replay = executable.replays[step.target];
      return replay_for_plan(recording, replay.operators, replay.outputs);
    }
    case ExecutablePlan::Step::Kind::drop: return drop(recording, step.target, true);
    case ExecutablePlan::Step::Kind::end: return drop(recording, step.target, false);
    case ExecutablePlan::Step::Kind::pack: {
      const auto& [value, form] = executable.packings[step.target];
      const Arbiter lock;
      (void)recording.values().pack(value, form);
      return;
    }
    case ExecutablePlan::Step::Kind::unpack: return unpack_for_plan(recording, step.target);
    case ExecutablePlan::Step::Kind::unpack_last: {
      unpack_for_plan(recording, step.target);
      const Arbiter lock;
      recording.values().copies(step.target).drop_packed();
      return;
    }
    case ExecutablePlan::Step::Kind::put: return put_for_plan(recording, step.target);
    case ExecutablePlan::Step::Kind::get: return get_for_plan(recording, step.target);
  }
}

// LibTorch's callbacks swallow errors. What failed here fails again, where it can be seen, if backward needs it. The
// operators are the same as ever, so the pass goes on, and gets another plan.
void execute(Recording& recording, const ExecutablePlan& executable, std::span<const ExecutablePlan::Step> steps) try {
  for (const ExecutablePlan::Step& step : steps) execute(recording, executable, step);
} catch (const std::exception& error) {
  const Arbiter lock;
  recording.context().counters().note(std::string("the plan could not be executed: ") + error.what());
  recording.drop_plan();
  if (const auto& pass = recording.pass(); pass && !pass->given) pass->drop_plan();
}

// Returns whether this moment is the one that the executable was made for, if its recipe was written only now.
bool is_expected(const Recording& recording, const ExecutablePlan& executable, Id moment) {
  if (executable.recipes.empty() || recording.cursor().following()) return true;
  const auto& moments = recording.journal().profile().moments;
  if (static_cast<std::size_t>(moment) >= moments.size()) return false;
  const Id op = moments[moment].op;
  if (op == no_operator) return executable.recipes[moment] == 0;
  return executable.recipes[moment] == recording.cursor().recipes().fingerprint_of(op);
}

}  // namespace

void execute_before(Recording& recording, Id moment) {
  PlanCursor* const plan = recording.plan();
  if (!plan || moment >= plan->executable()->moments()) return;
  plan->at(moment);
  const std::shared_ptr<const ExecutablePlan> executable = plan->executable();
  execute(recording, *executable, executable->steps_before(moment));
}

void execute_after(Recording& recording, Id moment) {
  PlanCursor* const plan = recording.plan();
  if (!plan || moment >= plan->executable()->moments()) return;
  const std::shared_ptr<const ExecutablePlan> executable = plan->executable();
  if (!is_expected(recording, *executable, moment)) {
    return diverge(recording, "moment " + std::to_string(moment) + " is not what it was in the rehearsal");
  }
  execute(recording, *executable, executable->steps_after(moment));
}

}  // namespace reprise::internal
