#include "chain/step_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

// Whether the state that the first step loads is not loaded again: the backward that needs it follows at once.
bool is_last_load(std::span<const ChainStep> steps) {
  const Id layer = steps[0].at + 1;
  std::size_t next = 1;
  if (next < steps.size() && steps[next] == ChainStep{ChainStep::Kind::tape, layer, steps[next].level}) ++next;
  return next < steps.size() && steps[next].kind == ChainStep::Kind::backward && steps[next].at == layer;
}

}  // namespace

std::optional<Id> StepWriter::place(Id level) const {
  if (level < 0 || level > 1) {
    throw BadOption(fmt::format("[chain] the schedule's steps are not valid: there is no level {}", level));
  }
  return places_[level];
}

void StepWriter::set_copy(Stay& stay, Id level, bool there) {
  if (level == 0) {
    stay.packed = there;
  } else {
    stay.on_disk = there;
  }
}

// The state before the layer is resident.
inline void StepWriter::forward(Id at) {
  const Id layer = at - 1;
  actions_.push_back(layer < has_run_ ? Action::replay(layer) : Action::run(layer));
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

inline bool StepWriter::join(Id at) {
  if (joined_end_ != actions_.size() || joined_state_ + 1 != at || at == layers_) return false;
  Stay &before = stay(at - 1), &after = stay(at);
  Action& layers = actions_[joined_];
  const bool again = at <= has_run_;
  if (before.stored || after.resident || again != (layers.kind == Action::Kind::replay)) return false;
  ++layers.tier;
  before.resident = false;
  after.resident = true;
  has_run_ = std::max(has_run_, at);
  joined_state_ = at;
  return true;
}

void StepWriter::advance(Id at) {
  if (joins_ && joined_end_ > 0 && join(at)) return;
  joined_ = actions_.size();
  forward(at);
  if (tapes_) actions_.push_back(Action::drop(tape_value(at - 1)));
  if (at == layers_) drop(at, stay(at));
  drop_unless_stored(at - 1);
  joined_end_ = actions_.size();
  joined_state_ = at;
}

void StepWriter::tape(Id at, bool goes_on) {
  const bool again = at <= has_run_;
  const bool state_there = again && stay(at).resident;
  if (!again || tapes_ || (goes_on && !state_there)) forward(at);
  if (at == layers_ || !(goes_on || state_there)) drop_unless_stored(at);
  // Backward needs the state before it, at once or, if it is stored, later.
  if (goes_on) drop_unless_stored(at - 1);
}

void StepWriter::backward(Id at) {
  const Id layer = at - 1;
  actions_.push_back(Action::run(2 * layers_ - 1 - layer));
  if (tapes_) actions_.push_back(Action::drop(tape_value(layer)));
  drop_unless_stored(layer);
}

void StepWriter::store(Id at, Id level) {
  Stay& it = stay(at);
  if (const auto tier = place(level)) {
    actions_.push_back(Action::put(value(at), *tier));
    set_copy(it, level, true);
  } else {
    it.stored = true;
  }
}

void StepWriter::load(Id at, Id level, bool last) {
  const auto tier = place(level);
  Stay& it = stay(at);
  if (!tier || it.resident) return;
  if (last) last_gets_.push_back(actions_.size());
  actions_.push_back(Action::get(value(at), *tier));
  it.resident = true;
  // With the whole plan before it, the interpreter finds out which get of a copy is the last.
  if (last || !as_it_goes_) set_copy(it, level, false);
}

void StepWriter::discard(Id at, Id level) {
  Stay& it = stay(at);
  if (place(level)) {
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

void StepWriter::write(std::span<const ChainStep> steps, std::size_t count) {
  using Kind = ChainStep::Kind;
  for (std::size_t i = 0; i < count; ++i) {
    const ChainStep& step = steps[i];
    switch (step.kind) {
      case Kind::advance: advance(step.at); break;
      case Kind::tape: tape(step.at, i + 1 == steps.size() || steps[i + 1].kind != Kind::backward); break;
      case Kind::backward: backward(step.at); break;
      case Kind::store: store(step.at, step.level); break;
      case Kind::load: load(step.at, step.level, as_it_goes_ && is_last_load(steps.subspan(i))); break;
      case Kind::discard: discard(step.at, step.level); break;
    }
  }
}

void StepWriter::forget_actions(std::size_t count) {
  actions_.erase(actions_.begin(), actions_.begin() + static_cast<std::ptrdiff_t>(count));
  std::erase_if(last_gets_, [&](std::size_t get) { return get < count; });
  for (std::size_t& get : last_gets_) get -= count;
  joined_end_ = 0;
}

void StepWriter::fail_state(Id state) const {
  throw BadOption(fmt::format("[chain] the schedule's steps are not valid: there is no state {}", state));
}

}  // namespace reprise::internal
