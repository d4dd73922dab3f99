#include "torch/executor.h"

#include "torch/replayer.h"

namespace reprise::internal {

std::span<const Script::Step> Script::steps_after(Id moment) const {
  return {steps.data() + after[moment], steps.data() + before[moment + 1]};
}
std::span<const Script::Step> Script::steps_before(Id moment) const {
  return {steps.data() + before[moment], steps.data() + after[moment]};
}

void Executor::before(Recording& recording, Id moment) {
  if (moment >= schedule_->moments()) return;
  moment_ = moment;
  try_to_execute(recording, schedule_->steps_before(moment));
}

void Executor::after(Recording& recording, Id moment) {
  if (moment < schedule_->moments()) try_to_execute(recording, schedule_->steps_after(moment));
}

// LibTorch's callbacks swallow errors. What failed here fails again, where it can be seen, if backward needs it.
void Executor::try_to_execute(Recording& recording, std::span<const Script::Step> steps) try {
  execute(recording, steps);
} catch (const std::exception& error) {
  const Arbiter lock;
  recording.diverge(std::string("the plan could not be executed: ") + error.what(), std::nullopt);  // ends this object
}

bool Executor::keeps(Id value) const {
  return static_cast<std::size_t>(value) < schedule_->last_drop.size() && schedule_->last_drop[value] > moment_;
}

void Executor::made(Recording& recording, Id value, c10::StorageImpl* storage) {
  if (static_cast<std::size_t>(value) >= schedule_->owned.size() || !schedule_->owned[value]) return;
  if (recording.choice_of(value) == Choice::forget) return;
  LiveValue& state = recording.live[value];
  state.saved_at = recording.now;
  if (!state.kept) recording.keep(value, libtorch::share(storage));
}

void Executor::execute(Recording& recording, std::span<const Script::Step> steps) {
  if (steps.empty()) return;
  for (const Script::Step& step : steps) {
    switch (step.kind) {
      case Script::Step::Kind::replay: {
        const Script::Replay& replay = schedule_->replays[step.target];
        replay_for_plan(recording, replay.operators, replay.outputs);
        break;
      }
      case Script::Step::Kind::drop: {
        const Arbiter lock;
        recording.live[step.target].dropped = true;
        recording.forget(step.target);
        break;
      }
      case Script::Step::Kind::end: {
        const Arbiter lock;
        recording.live[step.target].dropped = true;
        recording.release(step.target);
        break;
      }
      case Script::Step::Kind::pack: {
        const Arbiter lock;
        (void)recording.pack(step.target, *schedule_->forms[step.target]);
        break;
      }
      case Script::Step::Kind::unpack: unpack_for_plan(recording, step.target); break;
    }
  }
}

}  // namespace reprise::internal
