#include "chain/step_writer.h"

#include <algorithm>

namespace reprise::internal {

// The state before the layer is resident.
void StepWriter::forward(Id at) {
  const Id layer = at - 1;
  actions_.push_back(layer < has_run_ ? Action::replay(layer) : Action::run(layer));
  has_run_ = std::max(has_run_, at);
  change(at, [](Stay& stay) { stay.resident = true; });
}

void StepWriter::drop(Id state) {
  if (!states_[state].resident) return;
  actions_.push_back(Action::drop(value(state)));
  change(state, [](Stay& stay) { stay.resident = false; });
}

void StepWriter::drop_unless_stored(Id state) {
  if (!states_[state].stored) drop(state);
}

void StepWriter::advance(Id at) {
  forward(at);
  if (tapes_) actions_.push_back(Action::drop(tape_value(at - 1)));
  if (at == layers_) drop(at);
  drop_unless_stored(at - 1);
}

void StepWriter::tape(Id at, bool goes_on) {
  const bool again = at <= has_run_;
  const bool state_there = states_[at].resident;
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
  const auto place = places_[level];
  if (place) actions_.push_back(Action::put(value(at), *place));
  change(at, [&](Stay& stay) { (place ? stay.copied[level] : stay.stored) = true; });
}

void StepWriter::load(Id at, Id level) {
  const auto place = places_[level];
  if (!place || states_[at].resident) return;
  actions_.push_back(Action::get(value(at), *place));
  change(at, [&](Stay& stay) {
    stay.copied[level] = false;
    stay.resident = true;
  });
}

void StepWriter::discard(Id at, Id level) {
  if (places_[level]) {
    // A copy that was read has left with its last reading. One that never was leaves by being read.
    if (states_[at].copied[level] && !states_[at].resident) {
      load(at, level);
      drop(at);
    }
  } else {
    change(at, [](Stay& stay) { stay.stored = false; });
    drop(at);
  }
}

void StepWriter::write(const ChainStep& step, const ChainStep* following) {
  switch (step.kind) {
    case ChainStep::Kind::advance: return advance(step.at);
    case ChainStep::Kind::tape: return tape(step.at, !following || following->kind != ChainStep::Kind::backward);
    case ChainStep::Kind::backward: return backward(step.at);
    case ChainStep::Kind::store: return store(step.at, step.level);
    case ChainStep::Kind::load: return load(step.at, step.level);
    case ChainStep::Kind::discard: return discard(step.at, step.level);
  }
}

void StepWriter::write(const ChainSteps& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) write(steps[i], i + 1 < steps.size() ? &steps[i + 1] : nullptr);
}

}  // namespace reprise::internal
