#include "chain/step_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

// True if the state that the first step loads is not loaded again: the backward that needs the state follows at once.
bool is_last_load(std::span<const ChainStep> steps) {
  const Id layer = steps[0].at + 1;
  std::size_t next = 1;
  if (next < steps.size() && steps[next] == ChainStep{ChainStep::Kind::tape, layer, steps[next].level}) ++next;
  return next < steps.size() && steps[next].kind == ChainStep::Kind::backward && steps[next].at == layer;
}

}  // namespace

std::optional<Id> StepWriter::tier_of(Id level) const {
  if (level < 0 || level > 1) {
    throw BadOption(fmt::format("[chain] the schedule's steps are not valid: there is no level {}", level));
  }
  return tiers_[level];
}

void StepWriter::set_copy(Stay& stay, Id level, bool there) {
  if (level == 0) {
    stay.packed = there;
  } else {
    stay.on_disk = there;
  }
}

// Joins a layer to the one before it. The state between the two stays.
inline bool StepWriter::join_forward(Id layer, bool again) {
  if (!joins_ || actions_.empty() || layer + 1 == layers_) return false;
  Action& last = actions_.back();
  if (last.kind != (again ? Action::Kind::replay : Action::Kind::run) || last.tier > 0) return false;
  if (last.target - last.tier + 1 != layer || !stay(layer).stored) return false;
  --last.tier;
  return true;
}

// Writes the run or replay of a layer. The state before the layer is resident.
inline void StepWriter::forward(Id at) {
  const Id layer = at - 1;
  const bool again = layer < has_run_;
  if (!join_forward(layer, again)) actions_.push_back(again ? Action::replay(layer) : Action::run(layer));
  has_run_ = std::max(has_run_, at);
  if (layers_ < 0 && static_cast<std::size_t>(at) == states_.size()) states_.emplace_back();
  stay(at).resident = true;
}

inline void StepWriter::drop(Id state, Stay& it) {
  if (!it.resident) return;
  actions_.push_back(Action::drop(value(state)));
  it.resident = false;
}

inline void StepWriter::drop_unless_stored(Id state) {
  Stay& it = stay(state);
  if (!it.stored) drop(state, it);
}

void StepWriter::advance(Id at) {
  forward(at);
  if (tapes_) actions_.push_back(Action::drop(tape_value(at - 1)));
  if (at == layers_) drop(at, stay(at));
  drop_unless_stored(at - 1);
}

void StepWriter::tape(Id at, bool goes_on) {
  const bool again = at <= has_run_;
  const bool state_there = again && stay(at).resident;
  if (!again || tapes_ || (goes_on && !state_there)) forward(at);
  if (at == layers_ || !(goes_on || state_there)) drop_unless_stored(at);
  // Backward needs the state before it, at once or, if it is stored, later.
  if (goes_on) drop_unless_stored(at - 1);
}

// Joins a backward to the one before it, if the last action is the drop of the state between the two.
inline bool StepWriter::join_backward(Id moment, Id layer) {
  if (!joins_ || actions_.size() < 2 || actions_.back() != Action::drop(layer + 1)) return false;
  Action& last = actions_.end()[-2];
  if (last.kind != Action::Kind::run || last.target < layers_ || last.target + last.tier + 1 != moment) return false;
  actions_.pop_back();
  ++last.tier;
  return true;
}

void StepWriter::backward(Id at) {
  const Id layer = at - 1, moment = 2 * layers_ - 1 - layer;
  if (!join_backward(moment, layer)) actions_.push_back(Action::run(moment));
  if (tapes_) actions_.push_back(Action::drop(tape_value(layer)));
  drop_unless_stored(layer);
}

void StepWriter::store(Id at, Id level) {
  Stay& it = stay(at);
  if (const auto tier = tier_of(level)) {
    actions_.push_back(Action::put(value(at), *tier));
    set_copy(it, level, true);
  } else {
    it.stored = true;
  }
}

void StepWriter::load(Id at, Id level, bool last) {
  const auto tier = tier_of(level);
  Stay& it = stay(at);
  if (!tier || it.resident) return;
  if (last) last_gets_.push_back(actions_.size());
  actions_.push_back(Action::get(value(at), *tier));
  it.resident = true;
  // With the whole plan before it, the interpreter finds out which get of a copy is the last.
  if (last || !is_incremental_) set_copy(it, level, false);
}

void StepWriter::discard(Id at, Id level) {
  Stay& it = stay(at);
  if (tier_of(level)) {
    // A copy that was read has left with its last reading. One that never was leaves by being read.
    if (has_copy(it, level) && !it.resident) {
      load(at, level, true);
      drop(at, it);
    }
  } else {
    it.stored = false;
    drop(at, it);
  }
}

void StepWriter::end_forward() {
  if (layers_ > 0) drop(layers_, stay(layers_));
}

// Joins layers that advance to the action before them, which has made state `at`, as far as they follow each other
// through states of which nothing is known. Returns how many.
inline std::size_t StepWriter::join_advances(Action& layers, Id at, std::span<const ChainStep> steps) {
  if (layers.kind == Action::Kind::drop || stay(at).stored) return 0;
  const Id end = layers.kind == Action::Kind::replay ? std::min(has_run_ + 1, layers_) : layers_;
  std::size_t count = 0;
  for (const ChainStep& step : steps) {
    const Id next = at + 1 + static_cast<Id>(count);
    if (next >= end || step.kind != ChainStep::Kind::advance || step.at != next) break;
    if (!(states_[static_cast<std::size_t>(next)] == Stay{})) break;
    ++count;
  }
  const Id last = at + static_cast<Id>(count);
  stay(at).resident = false;
  stay(last).resident = true;
  layers.tier += last - at;
  has_run_ = std::max(has_run_, last);
  return count;
}

// Joins layers to the last action, if that has made state `at`, as long as each state is stored before the next layer
// runs. Returns how many of the first `count` steps were joined.
inline std::size_t StepWriter::join_kept(Id at, std::span<const ChainStep> steps, std::size_t count) {
  if (tiers_[0]) return 0;
  Action& layers = actions_.back();
  const bool again = layers.kind == Action::Kind::replay;
  if ((!again && layers.kind != Action::Kind::run) || layers.tier > 0 || layers.target - layers.tier + 1 != at)
    return 0;
  const Id end = again ? std::min(has_run_ + 1, layers_) : layers_;
  std::size_t next = 0;
  for (; next + 2 <= count && next + 2 < steps.size() && at + 1 < end; next += 2, ++at) {
    const ChainStep& runs = steps[next + 1];
    const bool goes_on = runs.kind == ChainStep::Kind::advance ||
                         (runs.kind == ChainStep::Kind::tape && steps[next + 2].kind != ChainStep::Kind::backward);
    if (steps[next] != ChainStep{ChainStep::Kind::store, at, 0} || !goes_on || runs.at != at + 1) break;
    if (states_[static_cast<std::size_t>(at) + 1] != Stay{}) break;
    states_[static_cast<std::size_t>(at)].stored = true;
    states_[static_cast<std::size_t>(at) + 1].resident = true;
    --layers.tier;
  }
  has_run_ = std::max(has_run_, at);
  return next;
}

// Joins the backward of the layers before state `at`, which the last action has dropped, as long as the state before
// each layer is stored and is discarded after its backward. Joins whole layers only. Returns how many steps were
// joined.
inline std::size_t StepWriter::join_reversed(Id at, std::span<const ChainStep> steps) {
  using Kind = ChainStep::Kind;
  if (tiers_[0] || has_run_ < layers_ || actions_.size() < 2 || actions_.back() != Action::drop(at)) return 0;
  Action &runs = actions_.end()[-2], &drop = actions_.back();
  if (runs.kind != Action::Kind::run || runs.target + runs.tier != 2 * layers_ - 1 - at) return 0;
  std::size_t next = 0;
  for (; at > 0; --at) {
    std::size_t end = next;
    const auto takes = [&](Kind kind, Id of) {
      const bool is_it = end < steps.size() && steps[end] == ChainStep{kind, of, 0};
      end += is_it;
      return is_it;
    };
    (void)takes(Kind::load, at - 1);
    (void)takes(Kind::tape, at);
    if (!takes(Kind::backward, at) || !takes(Kind::discard, at - 1)) break;
    Stay& before = states_[static_cast<std::size_t>(at) - 1];
    if (!before.resident || !before.stored) break;
    before = {};
    ++runs.tier;
    drop.target = at - 1;
    next = end;
  }
  return next;
}

void StepWriter::write(std::span<const ChainStep> steps, std::size_t count) {
  using Kind = ChainStep::Kind;
  for (std::size_t i = 0; i < count; ++i) {
    const ChainStep& step = steps[i];
    switch (step.kind) {
      case Kind::advance: {
        const std::size_t had = actions_.size();
        advance(step.at);
        if (!joins_) break;
        if (actions_.size() > had && step.at != layers_) {
          i += join_advances(actions_[had], step.at, steps.subspan(i + 1, count - i - 1));
        }
        i += join_kept(steps[i].at, steps.subspan(i + 1), count - i - 1);
        break;
      }
      case Kind::tape: {
        const bool goes_on = i + 1 == steps.size() || steps[i + 1].kind != Kind::backward;
        tape(step.at, goes_on);
        if (joins_ && goes_on && !actions_.empty()) i += join_kept(step.at, steps.subspan(i + 1), count - i - 1);
        break;
      }
      case Kind::backward: backward(step.at); break;
      case Kind::store: store(step.at, step.level); break;
      case Kind::load: load(step.at, step.level, marks_last_ && is_last_load(steps.subspan(i))); break;
      case Kind::discard:
        discard(step.at, step.level);
        if (joins_) i += join_reversed(step.at, steps.subspan(i + 1, count - i - 1));
        break;
    }
  }
}

void StepWriter::erase_actions(std::size_t count) {
  actions_.erase(actions_.begin(), actions_.begin() + static_cast<std::ptrdiff_t>(count));
  std::erase_if(last_gets_, [&](std::size_t get) { return get < count; });
  for (std::size_t& get : last_gets_) get -= count;
}

void StepWriter::fail_state(Id state) const {
  throw BadOption(fmt::format("[chain] the schedule's steps are not valid: there is no state {}", state));
}

}  // namespace reprise::internal
