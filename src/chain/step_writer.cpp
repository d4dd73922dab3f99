#include "chain/step_writer.h"

#include <algorithm>

namespace reprise::internal {

void StepWriter::grow(Id state) {
  const auto size = static_cast<std::size_t>(state) + 1;
  if (size <= resident_.size()) return;
  const bool first = resident_.empty();
  resident_.resize(size, 0);
  stored_.resize(size, 0);
  for (auto& copied : copied_) copied.resize(size, 0);
  if (first) resident_[0] = 1;
}

// The state before the layer is resident.
void StepWriter::forward(Id at) {
  const Id layer = at - 1;
  grow(at);
  actions_.push_back(layer < has_run_ ? Action::replay(layer) : Action::run(layer));
  has_run_ = std::max(has_run_, at);
  resident_[at] = 1;
}

void StepWriter::drop(Id state) {
  if (!resident_[state]) return;
  actions_.push_back(Action::drop(value(state)));
  resident_[state] = 0;
}

void StepWriter::drop_unless_stored(Id state) {
  if (!stored_[state]) drop(state);
}

void StepWriter::advance(Id at) {
  forward(at);
  if (tapes_) actions_.push_back(Action::drop(tape_value(at - 1)));
  if (at == layers_) drop(at);
  drop_unless_stored(at - 1);
}

void StepWriter::tape(Id at, bool goes_on) {
  grow(at);
  const bool again = at <= has_run_;
  const bool state_there = resident_[at];
  if (!again || tapes_ || (goes_on && !state_there)) forward(at);
  if (at == layers_ || !(goes_on || state_there)) drop_unless_stored(at);
  // Backward needs the state before it, at once or, if it is stored, later.
  if (goes_on) drop_unless_stored(at - 1);
}

void StepWriter::backward(Id at) {
  const Id layer = at - 1;
  actions_.push_back(Action::run(2 * *layers_ - 1 - layer));
  if (tapes_) actions_.push_back(Action::drop(tape_value(layer)));
  drop_unless_stored(layer);
}

void StepWriter::store(Id at, Id level) {
  grow(at);
  if (const auto place = places_[level]) {
    actions_.push_back(Action::put(value(at), *place));
    copied_[level][at] = 1;
  } else {
    stored_[at] = 1;
  }
}

void StepWriter::load(Id at, Id level) {
  const auto place = places_[level];
  if (!place || resident_[at]) return;
  actions_.push_back(Action::get(value(at), *place));
  copied_[level][at] = 0;
  resident_[at] = 1;
}

void StepWriter::discard(Id at, Id level) {
  if (const auto place = places_[level]) {
    // A copy that was read has left with its last reading. One that never was leaves by being read.
    if (copied_[level][at] && !resident_[at]) {
      load(at, level);
      drop(at);
    }
  } else {
    stored_[at] = 0;
    drop(at);
  }
}

void StepWriter::write(const ChainSteps& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ChainStep& step = steps[i];
    const bool backward_next = i + 1 < steps.size() && steps[i + 1].kind == ChainStep::Kind::backward;
    switch (step.kind) {
      case ChainStep::Kind::advance: advance(step.at); break;
      case ChainStep::Kind::tape: tape(step.at, !backward_next); break;
      case ChainStep::Kind::backward: backward(step.at); break;
      case ChainStep::Kind::store: store(step.at, step.level); break;
      case ChainStep::Kind::load: load(step.at, step.level); break;
      case ChainStep::Kind::discard: discard(step.at, step.level); break;
    }
  }
}

}  // namespace reprise::internal
