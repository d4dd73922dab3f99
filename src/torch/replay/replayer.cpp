#include "torch/replay/replayer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/libtorch/error_translation.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/replay/replay.h"

namespace reprise::internal {
namespace {

// While something is replayed. What that allocates is in the plan, or caused by the lack of one: it is not among the
// other bytes. Where it does not fit, a more frugal replay is tried: its errors are ours.
class Replaying {
 public:
  explicit Replaying(const Recording& r) : meter_(r.context().device().meter()), before_(meter_.take_other_peak()) {}
  ~Replaying() {
    (void)meter_.take_other_peak();
    meter_.raise_other_peak(before_);
  }
  Replaying(const Replaying&) = delete;
  Replaying& operator=(const Replaying&) = delete;

 private:
  Meter& meter_;
  const Bytes before_;
  const NoErrorTranslation inside_;
};

// The last resort when a replay does not fit: one value at a time, with nothing pinned but what was made for the
// operators that wait for the rest of their inputs. An input that is there is pinned last, so that it may go and be
// made again: else a long chain would pin everything beside it (all gates of a recurrence, on the way back to its first
// cell). So what two operators need may be made twice, and the work is limited.
class FrugalReplay {
 public:
  FrugalReplay(Recording& recording, Replay::Keep keep, Replay::From from)
      : r_(recording), keep_(keep), from_(from), most_runs_([&] {
          const Arbiter lock;
          return 8 * static_cast<int>(recording.cursor().recipes().operators.size()) + 64;
        }()) {}

  // Nothing: it would be too much work.
  std::optional<c10::Storage> recompute(Id value) {
    push(value);
    c10::Storage made;
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (made) frame.inputs[frame.awaited].second = std::exchange(made, c10::Storage());
      if (const auto missing = next_missing(frame)) {
        frame.awaited = *missing;
        push(frame.inputs[*missing].first);
        continue;
      }
      if (++runs_ > most_runs_) return std::nullopt;
      Frame ready = std::move(frame);
      frames_.pop_back();
      made = Replay(r_, keep_).run_one(ready.op, std::move(ready.inputs), ready.value);
    }
    return made;
  }

 private:
  struct Frame {
    Id value, op;
    std::vector<std::pair<Id, c10::Storage>> inputs;  // empty: not pinned yet
    std::size_t awaited = 0;                          // the one that the frame above makes
  };

  // The index of an input that has to be made; nothing: all are there now, and pinned.
  std::optional<std::size_t> next_missing(Frame& frame) {
    for (std::size_t i = 0; i < frame.inputs.size(); ++i) {
      if (!frame.inputs[i].second && !has_contents(frame.inputs[i].first)) return i;
    }
    for (std::size_t i = 0; i < frame.inputs.size(); ++i) {
      auto& [input, storage] = frame.inputs[i];
      if (!storage) storage = there(input);
      if (!storage) return i;  // it had to go for the copy of another one
    }
    return std::nullopt;
  }

  void push(Id value) {
    const Arbiter lock;
    Frame frame{value, r_.cursor().info(value).maker, {}};
    check_inputs(r_, frame.op);
    for (const Reference& reference : r_.cursor().recipes().references_of(frame.op)) {
      const auto is_it = [&](const auto& input) { return input.first == reference.value; };
      if (reference.value == no_value || std::any_of(frame.inputs.begin(), frame.inputs.end(), is_it)) continue;
      frame.inputs.emplace_back(reference.value, c10::Storage());
    }
    frames_.push_back(std::move(frame));
  }

  [[nodiscard]] bool has_contents(Id value) const {
    const Arbiter lock;
    const Values& values = r_.values();
    if (from_ == Replay::From::leaves && values.recomputable(value)) return false;
    return values.resident(value) || values.copies(value).usable();
  }

  c10::Storage there(Id value) {
    Replay replay(r_, Replay::Keep::nothing);
    {
      const Arbiter lock;
      const Values& values = r_.values();
      if (from_ == Replay::From::leaves && values.recomputable(value)) return {};
      if (c10::Storage storage = values.storage(value)) return storage;
      if (!values.copies(value).usable()) return {};
      replay.needs().collect_copy(value);
    }
    try {
      return replay.take(value);
    } catch (const LostCopy&) {
      return {};
    }
  }

  Recording& r_;
  const Replay::Keep keep_;
  const Replay::From from_;
  const int most_runs_;
  int runs_ = 0;
  std::vector<Frame> frames_;
};

// Once more if a copy turned out to be lost: then there is one less.
template <class Attempt>
auto without_lost_copies(const Attempt& attempt) {
  for (;;) {
    try {
      return attempt();
    } catch (const LostCopy&) {
    }
  }
}

// Nothing: it did not fit, and may without siblings.
std::optional<c10::Storage> recompute_at_once(Recording& recording, Id value, bool with_siblings) {
  Replay replay(recording, Replay::Keep::what_is_awaited);
  bool more = false;
  {
    const Arbiter lock;
    replay.needs().collect(value);
    replay.needs().want(value);
    more = with_siblings && replay.needs().collect_siblings();
  }
  try {
    replay.run();
    return replay.take(value);
  } catch (const BudgetError&) {
    if (!more) throw;
  }
  return std::nullopt;
}

}  // namespace

c10::Storage recompute(Recording& recording, Id value) {
  const Replaying replaying(recording);
  try {
    return without_lost_copies([&] {
      if (auto storage = recompute_at_once(recording, value, true)) return *storage;
      return *recompute_at_once(recording, value, false);
    });
  } catch (const BudgetError&) {
    FrugalReplay frugal(recording, Replay::Keep::what_is_awaited, Replay::From::what_is_there);
    if (auto storage = frugal.recompute(value)) return *storage;
    throw;
  }
}

c10::Storage recompute_anew(Recording& recording, Id value, Anew anew) {
  const Replaying replaying(recording);
  const Replay::From from = anew == Anew::everything ? Replay::From::leaves : Replay::From::what_is_there;
  try {
    return without_lost_copies([&] {
      Replay replay(recording, Replay::Keep::secret, from);
      {
        const Arbiter lock;
        replay.needs().want(value);
        replay.needs().collect_operator(recording.cursor().info(value).maker);
      }
      replay.run();
      return replay.take(value);
    });
  } catch (const BudgetError&) {
    FrugalReplay frugal(recording, Replay::Keep::secret, from);
    if (auto storage = frugal.recompute(value)) return *storage;
    throw;
  }
}

void replay_for_plan(Recording& recording, std::span<const Id> operators, std::span<const Id> outputs) try {
  const Replaying replaying(recording);
  without_lost_copies([&] {
    Replay replay(recording, Replay::Keep::outputs);
    {
      const Arbiter lock;
      for (const Id value : outputs) {
        if (PlanCursor* const plan = recording.plan()) plan->bring_back(value);
        replay.needs().want(value);
      }
      for (const Id op : operators) replay.needs().collect_operator(op);
    }
    replay.run();
    const Arbiter lock;
    const std::size_t run = replay.needs().operators().size();  // with what is missing beside the plan
    recording.context().counters().replays_of_plan(static_cast<std::int64_t>(std::min(run, operators.size())));
  });
} catch (const ChangedInputError& error) {
  if (!error.facts().freed) throw;  // else it is too early: it is recomputed when it is asked for
}

void unpack_for_plan(Recording& recording, Id value) {
  const Replaying replaying(recording);
  Replay replay(recording, Replay::Keep::outputs);
  {
    const Arbiter lock;
    if (PlanCursor* const plan = recording.plan()) plan->bring_back(value);
    if (recording.values().resident(value) || !recording.values().copies(value).packed()) return;
    replay.needs().collect_copy(value);
    replay.needs().want(value);
  }
  (void)replay.take(value);
}

void put_for_plan(Recording& recording, Id value) {
  std::shared_ptr<const TierCopy> copy;
  bool shared = false;
  {
    Arbiter lock;
    shared = recording.values().held_by_program(value);
    copy = recording.values().put_below(value);
    lock.unlock();
  }
  if (copy && shared) copy->finish_put();
}

void get_for_plan(Recording& recording, Id value) {
  const Replaying replaying(recording);
  std::shared_ptr<const TierCopy> copy;
  {
    const Arbiter lock;
    if (PlanCursor* const plan = recording.plan()) plan->bring_back(value);
    if (!recording.values().resident(value)) copy = recording.values().copies(value).below();
  }
  if (!copy) return;
  try {
    copy->fetch();
  } catch (const BudgetError&) {  // it is got when it is asked for
  }
}

void finish_put_for_plan(Recording& recording, Id value) {
  std::shared_ptr<const TierCopy> copy;
  {
    const Arbiter lock;
    copy = recording.values().copies(value).below();
  }
  if (copy) copy->finish_put();
}

}  // namespace reprise::internal
