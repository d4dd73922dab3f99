// How the engine executes the actions of a pass: run, replay, drop, put, get.
#include "chain/chain_engine.h"

namespace reprise::internal {

// Executes the actions up to the run of this layer, forward or backward, which is included.
void ChainEngine::execute_until(Id layer) {
  if (phase_ == Phase::forward) {
    if (pass_->decides()) pass_->prepare_forward();
    while (position_ <= layer) execute(*pass_->next());
  } else {
    while (position_ > layer) execute(*pass_->next());
  }
}

// Executes what the plan does with the state before this layer right after the layer has run.
void ChainEngine::execute_what_follows(Id position) {
  while (const Action* action = pass_->next()) {
    const Id state = pass_->state_of(action->target);
    const bool about_this = pass_->is_tape(action->target) || state <= position;
    const bool ends = action->kind == Action::Kind::drop && state == pass_->layers();
    if (action->kind != Action::Kind::drop && action->kind != Action::Kind::put) return;
    if (!about_this && !ends) return;
    execute(*action);
  }
}

// The kinds in the order of how many there are. The action is a copy: the pass may be planned again meanwhile.
void ChainEngine::execute(const Action& next) {
  const Action action = next;
  pass_->took();
  if (action.kind == Action::Kind::drop) return drop(action.target);
  if (action.kind == Action::Kind::replay) return run_layers(action.target, pass_->more_layers(action));
  if (action.kind == Action::Kind::run) {
    if (phase_ == Phase::forward || action.target < pass_->layers()) {
      return run_layers(action.target, pass_->more_layers(action));
    }
    return run_backward(2 * pass_->layers() - 1 - action.target, pass_->more_layers(action));
  }
  const StateTier tier = pass_->is_disk(action.tier) ? StateTier::disk : StateTier::packed;
  if (action.kind == Action::Kind::put) return put(pass_->state_of(action.target), tier);
  get(pass_->state_of(action.target), tier);
}

inline void ChainEngine::run_layers(Id layer, Id more) {
  if (more == 0) {
    run_forward(layer);
  } else if (more > 0) {
    run_advancing(layer, more);
  } else {
    run_keeping(layer, -more);
  }
}

void ChainEngine::run_advancing(Id layer, Id more) {
  const bool replay = phase_ == Phase::backward || layer < position_;
  run_forward(layer);
  if (!goes_plainly()) {
    if (drops_next(layer)) {
      drop(layer);
      pass_->took();
    }
    for (Id next = layer + 1; next <= layer + more; ++next) {
      run_forward(next);
      drop(next);
    }
    return;
  }
  const Id slot = held_.slot(layer + 1);
  ChainStatistics& statistics = held_.statistics;
  for (Id next = layer + 1; next <= layer + more; ++next) {
    ++statistics.forward_calls;
    const ChainStates::Made made = states_.advance(layers().number(first_ + next), slot, false);
    held_.count_moved_on(made.replaced, made.bytes);
    if (replay) {
      ++statistics.replays;
    } else {
      position_ = next + 1;
      statistics.not_stored += made.replaced;
    }
  }
  held_.moved_on_to(layer + 1, layer + more + 1);
}

void ChainEngine::run_keeping(Id layer, Id more) {
  if (!goes_plainly()) {
    for (Id next = layer; next <= layer + more; ++next) run_forward(next);
    return;
  }
  const bool replay = phase_ == Phase::backward || layer < position_;
  Id input = held_.slot(layer);
  for (Id next = layer; next <= layer + more; ++next) {
    const ChainStates::Made made = states_.forward(layers().number(first_ + next), input, false);
    held_.hold(next + 1, made.state, made.bytes);
    input = made.state;
  }
  const auto count = static_cast<std::uint64_t>(more) + 1;
  held_.statistics.forward_calls += count;
  if (replay) {
    held_.statistics.replays += count;
  } else {
    position_ = layer + more + 1;
  }
}

void ChainEngine::run_backward(Id layer, Id more) {
  if (!goes_plainly()) {
    for (; more > 0; --more, --layer) {
      run_backward(layer);
      drop(layer);
    }
    return run_backward(layer);
  }
  for (;; --layer, --more) {
    ++held_.statistics.backward_calls;
    states_.backward(layers().number(first_ + layer), held_.slot(layer), nowhere);
    position_ = layer;
    if (more == 0) return;
    (void)held_.drop(layer);
  }
}

// A layer of a pass in which nobody watches, limits, compares or decides anything, and forward returns states. It does
// what run_forward does; most passes are of this kind, and layers may be small.
void ChainEngine::run_forward_plainly(Id layer) {
  const bool replay = phase_ == Phase::backward || layer < position_;
  const Id input = held_.slot(layer);
  const int number = layers().number(first_ + layer);
  ++held_.statistics.forward_calls;
  if (replay) {
    ++held_.statistics.replays;
  } else {
    position_ = layer + 1;
  }
  if (layer + 1 == pass_->layers()) {
    const ChainStates::Made made = states_.forward(number, input, false);
    if (replay) {
      states_.drop(made.state);
    } else {
      result_ = made.state;
    }
  } else if (drops_next(layer)) {
    const ChainStates::Made made = states_.advance(number, input, false);
    const bool remembered = held_.moved_on(layer, input, made.replaced, made.bytes);
    if (!replay && !remembered) held_.statistics.not_stored += made.replaced;
    pass_->took();
  } else {
    const ChainStates::Made made = states_.forward(number, input, false);
    held_.hold(layer + 1, made.state, made.bytes);
  }
}

void ChainEngine::run_forward(Id layer) {
  if (plain_) return run_forward_plainly(layer);
  // The tape is wanted unless the plan drops it at once.
  const bool with_tape = pass_->tapes() && !drops_next(pass_->tape_value(layer));
  const bool replay = phase_ == Phase::backward || layer < position_;
  if (keeping() && !replay && layer > 0) keep_if_remembered(layer - 1);
  const Id input = held_.slot(layer);
  const bool takes_slot = may_take_slot(layer, input);
  const ChainStates::Made made =
      takes_slot ? call_in_place(layer, replay, with_tape) : call_forward(layer, input, with_tape);
  if (pass_->limit() && !accept(layer, made)) return;
  if (replay) {
    ++held_.statistics.replays;
  } else {
    position_ = layer + 1;
    if (pass_->decides()) pass_->ran(layer, cost_ ? *cost_ : setup_.forward_cost(first_ + layer));
    if (ran_before_) ++held_.statistics.replays;
  }
  verification_.made(first_ + layer, states_, made.state, replay || ran_before_);
  if (made.tape != nowhere) held_.hold_tape(layer, made.tape, states_.tape_bytes(made.tape));
  // The last state is the caller's, and all states are if the loop is.
  const bool last = (layers().known() || phase_ == Phase::backward) && layer + 1 == pass_->layers();
  if (!replay && (last || owner_ == Owner::caller)) {
    result_ = made.state;
  } else if (last) {
    states_.drop(made.state);
  } else {
    held_.hold(layer + 1, made.state, made.bytes);
  }
  if (takes_slot && returns_state_) forget_replaced(layer, replay, made.replaced);
  if (catching_up_ && last) {
    catching_up_ = false;
    leave_room_for_gradients();
  }
  tell(replay || ran_before_ ? ChainProgress::Phase::replay : ChainProgress::Phase::forward, layer);
}

// A state that is returned is there together with the one before it, so that it can only be put into its slot where
// nobody counts between the two.
bool ChainEngine::may_take_slot(Id layer, Id input) {
  if (input < 0 || !(works_in_place_ || (returns_state_ && !pass_->limit() && !observer_))) return false;
  return pass_->drops_soon(pass_->state_value(layer));
}

// The state before the layer becomes the one after it.
ChainStates::Made ChainEngine::call_in_place(Id layer, bool replay, bool with_tape) {
  ++held_.statistics.forward_calls;
  const Id slot = held_.slot(layer);
  if (works_in_place_) forget_replaced(layer, replay, states_.bytes(slot));
  return states_.advance(layers().number(first_ + layer), slot, with_tape);
}

// The state before the layer is not in its slot any more.
void ChainEngine::forget_replaced(Id layer, bool replay, Bytes bytes) {
  const HeldStates::Dropped dropped = held_.replaced(layer, bytes);
  if (!replay && !dropped.remembered) held_.statistics.not_stored += bytes;
  if (drops_next(pass_->state_value(layer))) pass_->took();
}

void ChainEngine::run_backward(Id layer) {
  if (layer + 1 == pass_->layers() && !accept_gradient(layer)) return;  // the one to start with
  ++held_.statistics.backward_calls;
  states_.backward(layers().number(first_ + layer), held_.slot(layer),
                   pass_->tapes() ? held_.tape_slot(layer) : nowhere);
  if (keeping()) keep_gradient(first_ + layer);
  position_ = layer;
  if (pass_->limit()) {
    leave_room_for_gradients();
    accept_made_gradient(layer);
  }
  tell(ChainProgress::Phase::backward, layer);
}

void ChainEngine::drop(Id value) {
  const Id state = pass_->state_of(value);
  if (pass_->is_tape(value)) return held_.drop_tape(state);
  const HeldStates::Dropped dropped = held_.drop(state);
  if (phase_ == Phase::forward && state < position_ && !dropped.remembered) {
    held_.statistics.not_stored += dropped.bytes;
  }
}

void ChainEngine::put(Id state, StateTier tier) {
  Bytes bytes = 0;
  states_.encode(held_.slot(state), [&](const ArrayView& array) {
    held_.reserve(tiers_.used().room(array), state);
    if (keeping() && (tier == StateTier::disk || keeps_remembered())) kept_.put_state(first_ + state, array);
    if (!keeping() || tier != StateTier::disk) bytes = tiers_.put(tier, key_of(state), array);
  });
  held_.count_put(state);
  if (pass_->limit()) accept_coded(state, tier, bytes);
}

void ChainEngine::get(Id state, StateTier tier) {
  const bool last = pass_->is_last_get();
  if (tier == StateTier::disk) {
    ++disk_reads_;
    tiers_.prefetch(pass_->wanted_from_disk(disk_reads_, 2), first_);
  }
  const bool stays = keeping() && tier == StateTier::disk;  // until a gradient is there that makes it unnecessary
  if (last && drops_next(pass_->state_value(state))) {
    if (!stays) tiers_.erase(tier, key_of(state));  // it was given up and is not wanted
  } else {
    Array array = tiers_.get(tier, key_of(state), last && !stays);
    const auto bytes = static_cast<Bytes>(array.bytes());
    held_.reserve(2 * bytes, state);
    held_.count_array(bytes);
    const Id slot = states_.decode(std::move(array));
    held_.hold(state, slot, states_.bytes(slot));
    held_.discount_array(bytes);
  }
  held_.count_get(state, last);
}

}  // namespace reprise::internal
