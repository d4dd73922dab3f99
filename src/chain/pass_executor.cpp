#include "chain/pass_executor.h"

namespace reprise::internal {

// ---- layers ----

void PassExecutor::begin_part() {
  is_plain_ = can_be_plain();
  actions().set_joining(is_plain_);
}

bool PassExecutor::can_be_plain() const {
  const PassActions& actions = *pass_.actions;
  return is_by_value_ && pass_.loop_owner == ChainPass::LoopOwner::engine && context_.layers().known() &&
         !actions.has_tapes() && !actions.limit() && !actions.has_decisions() && !pass_.has_run_before &&
         !context_.observer && !keeper_.is_on() && !tiers_.is_next_kept() && !context_.verification.is_on();
}

void PassExecutor::run_forward(Id input) {
  const Id count = context_.part_size();
  if (count == 0) {
    pass_.result = input;
  } else {
    held_.hold(0, input, states_.bytes(input));
    for (Id layer = 0; layer < count; ++layer) execute_until(layer);
    execute_what_follows(count - 1);
  }
  turn();
}

void PassExecutor::run_forward_until(Id input, const std::function<bool(Id position, Id state)>& done) {
  held_.hold(0, input, states_.bytes(input));
  Id layer = 0;
  execute_until(layer);
  while (!done(layer, held_.slot(layer + 1))) execute_until(++layer);
  execute_what_follows(layer);
  pass_.result = held_.take(layer + 1);
  turn();
}

void PassExecutor::run_next_forward(std::optional<double> cost) {
  const Id layer = pass_.position;
  held_.borrow(layer);
  cost_ = cost;
  execute_until(layer);
  execute_what_follows(layer);
  held_.copy_if_borrowed(layer);
}

void PassExecutor::turn() {
  actions().turn();
  if (keeper_.is_on() && context_.part_size() > 0) keeper_.keep_if_remembered(context_.part_size() - 1);
  pass_.phase = ChainPass::Phase::backward;
  sizes_.update_limit();
  tiers_.prefetch(actions().wanted_from_disk(2), pass_.first);
}

void PassExecutor::run_backward() {
  while (pass_.position > 0) execute_until(pass_.position - 1);
  execute_what_follows(0);
}

void PassExecutor::run_next_backward() {
  const Id layer = pass_.position - 1;
  execute_until(layer);
  execute_what_follows(layer);
}

void PassExecutor::end() noexcept {
  is_plain_ = false;
  cost_.reset();
}

// ---- actions ----

// Executes the actions up to the run of this layer, forward or backward, included.
inline void PassExecutor::execute_until(Id layer) {
  if (pass_.is_forward()) {
    if (actions().has_decisions()) actions().prepare_forward();
    while (pass_.position <= layer) execute(*actions().next());
  } else {
    while (pass_.position > layer) execute(*actions().next());
  }
}

// Executes what the plan does with the state before this layer right after the layer has run.
void PassExecutor::execute_what_follows(Id position) {
  while (const Action* action = actions().next()) {
    const Id state = actions().state_of(action->target);
    const bool about_this = actions().is_tape(action->target) || state <= position;
    const bool ends = action->kind == Action::Kind::drop && state == actions().layers();
    if (action->kind != Action::Kind::drop && action->kind != Action::Kind::put) return;
    if (!about_this && !ends) return;
    execute(*action);
  }
}

// The kinds in the order of how many there are. The action is a copy: the pass may be planned again meanwhile.
inline void PassExecutor::execute(const Action& next) {
  const Action action = next;
  actions().advance();
  if (action.kind == Action::Kind::drop) return drop(action.target);
  if (action.kind == Action::Kind::replay) return run_layers(action.target, actions().more_layers(action));
  if (action.kind == Action::Kind::run) {
    if (pass_.is_forward() || action.target < actions().layers()) {
      return run_layers(action.target, actions().more_layers(action));
    }
    return reverse_layers(2 * actions().layers() - 1 - action.target, actions().more_layers(action));
  }
  const StateTier tier = actions().is_disk(action.tier) ? StateTier::disk : StateTier::packed;
  if (action.kind == Action::Kind::put) return put(actions().state_of(action.target), tier);
  get(actions().state_of(action.target), tier);
}

inline void PassExecutor::run_layers(Id layer, Id more) {
  if (more == 0) {
    run_layer(layer);
  } else if (more > 0) {
    run_advancing(layer, more);
  } else {
    run_keeping(layer, -more);
  }
}

void PassExecutor::run_advancing(Id layer, Id more) {
  const bool replay = pass_.is_replay(layer);
  run_layer(layer);
  if (!is_plain()) {
    if (is_dropped_next(layer)) {
      drop(layer);
      actions().advance();
    }
    for (Id next = layer + 1; next <= layer + more; ++next) {
      run_layer(next);
      drop(next);
    }
    return;
  }
  const Id slot = held_.slot(layer + 1);
  for (Id next = layer + 1; next <= layer + more; ++next) {
    ++statistics_.forward_calls;
    const ChainStates::Made made = states_.advance(context_.number(next), slot, false);
    context_.account.replace(made.replaced, made.bytes);
    if (replay) {
      ++statistics_.replays;
    } else {
      pass_.position = next + 1;
      statistics_.not_stored += made.replaced;
    }
  }
  held_.move_to(layer + 1, layer + more + 1);
}

void PassExecutor::run_keeping(Id layer, Id more) {
  if (!is_plain()) {
    for (Id next = layer; next <= layer + more; ++next) run_layer(next);
    return;
  }
  const bool replay = pass_.is_replay(layer);
  Id input = held_.slot(layer);
  for (Id next = layer; next <= layer + more; ++next) {
    const ChainStates::Made made = states_.forward(context_.number(next), input, false);
    held_.hold(next + 1, made.state, made.bytes);
    input = made.state;
  }
  const auto count = static_cast<std::uint64_t>(more) + 1;
  statistics_.forward_calls += count;
  if (replay) {
    statistics_.replays += count;
  } else {
    pass_.position = layer + more + 1;
  }
}

void PassExecutor::reverse_layers(Id layer, Id more) {
  if (!is_plain()) {
    for (; more > 0; --more, --layer) {
      reverse_layer(layer);
      drop(layer);
    }
    return reverse_layer(layer);
  }
  for (;; --layer, --more) {
    ++statistics_.backward_calls;
    states_.backward(context_.number(layer), held_.slot(layer), nowhere);
    pass_.position = layer;
    if (more == 0) return;
    (void)held_.drop(layer);
  }
}

// Does what run_layer does where can_be_plain() is true: most passes are of this kind, and layers may be small.
void PassExecutor::run_layer_plainly(Id layer) {
  const bool replay = pass_.is_replay(layer);
  const Id input = held_.slot(layer);
  const int number = context_.number(layer);
  ++statistics_.forward_calls;
  if (replay) {
    ++statistics_.replays;
  } else {
    pass_.position = layer + 1;
  }
  if (layer + 1 == actions().layers()) {
    const ChainStates::Made made = states_.forward(number, input, false);
    if (replay) {
      states_.drop(made.state);
    } else {
      pass_.result = made.state;
    }
  } else if (is_dropped_next(layer)) {
    const ChainStates::Made made = states_.advance(number, input, false);
    const bool remembered = held_.move_to_next(layer, input, made.replaced, made.bytes);
    if (!replay && !remembered) statistics_.not_stored += made.replaced;
    actions().advance();
  } else {
    const ChainStates::Made made = states_.forward(number, input, false);
    held_.hold(layer + 1, made.state, made.bytes);
  }
}

void PassExecutor::run_layer(Id layer) {
  if (is_plain_) return run_layer_plainly(layer);
  // The tape is wanted unless the plan drops it at once.
  const bool with_tape = actions().has_tapes() && !is_dropped_next(actions().tape_value(layer));
  const bool replay = pass_.is_replay(layer);
  if (keeper_.is_on() && !replay && layer > 0) keeper_.keep_if_remembered(layer - 1);
  const Id input = held_.slot(layer);
  const bool takes_slot = can_take_slot(layer, input);
  const ChainStates::Made made =
      takes_slot ? call_in_place(layer, replay, with_tape) : context_.call_forward(layer, input, with_tape);
  if (actions().limit() && !sizes_.accept(layer, made)) return;
  if (replay) {
    ++statistics_.replays;
  } else {
    pass_.position = layer + 1;
    if (actions().has_decisions())
      actions().record_run(layer, cost_ ? *cost_ : context_.setup.forward_cost(pass_.first + layer));
    if (pass_.has_run_before) ++statistics_.replays;
  }
  context_.verification.check(pass_.first + layer, states_, made.state, replay || pass_.has_run_before);
  if (made.tape != nowhere) held_.hold_tape(layer, made.tape, states_.tape_bytes(made.tape));
  // The last state is the caller's, and all states are if the loop is.
  const bool last = (context_.layers().known() || pass_.is_backward()) && layer + 1 == actions().layers();
  if (!replay && (last || pass_.loop_owner == ChainPass::LoopOwner::caller)) {
    pass_.result = made.state;
  } else if (last) {
    states_.drop(made.state);
  } else {
    held_.hold(layer + 1, made.state, made.bytes);
  }
  if (takes_slot && is_by_value_) release_replaced(layer, replay, made.replaced);
  if (pass_.is_catching_up && last) {
    pass_.is_catching_up = false;
    sizes_.update_limit();
  }
  context_.report(replay || pass_.has_run_before ? ChainProgress::Phase::replay : ChainProgress::Phase::forward, layer);
}

// A state that is returned is there together with the one before it. It can be put into that one's slot only where
// nothing counts between the two.
inline bool PassExecutor::can_take_slot(Id layer, Id input) {
  if (input < 0 || !(is_in_place_ || (is_by_value_ && !actions().limit() && !context_.observer))) return false;
  return actions().is_dropped_soon(actions().state_value(layer));
}

// Turns the state before the layer into the one after it.
ChainStates::Made PassExecutor::call_in_place(Id layer, bool replay, bool with_tape) {
  ++statistics_.forward_calls;
  const Id slot = held_.slot(layer);
  if (is_in_place_) release_replaced(layer, replay, states_.bytes(slot));
  return states_.advance(context_.number(layer), slot, with_tape);
}

// Counts that the state before the layer has left its slot, by the drop that the plan has next.
void PassExecutor::release_replaced(Id layer, bool replay, Bytes bytes) {
  const HeldStates::Dropped dropped = held_.release_slot(layer, bytes);
  if (!replay && !dropped.remembered) statistics_.not_stored += bytes;
  if (is_dropped_next(actions().state_value(layer))) actions().advance();
}

void PassExecutor::reverse_layer(Id layer) {
  if (layer + 1 == actions().layers() && !sizes_.accept_gradient(layer)) return;  // the one to start with
  ++statistics_.backward_calls;
  states_.backward(context_.number(layer), held_.slot(layer), actions().has_tapes() ? held_.tape_slot(layer) : nowhere);
  if (keeper_.is_on()) keeper_.keep_gradient(pass_.first + layer);
  pass_.position = layer;
  if (actions().limit()) {
    sizes_.update_limit();
    sizes_.accept_made_gradient(layer);
  }
  context_.report(ChainProgress::Phase::backward, layer);
}

void PassExecutor::drop(Id value) {
  const Id state = actions().state_of(value);
  if (actions().is_tape(value)) return held_.drop_tape(state);
  const HeldStates::Dropped dropped = held_.drop(state);
  if (pass_.is_forward() && state < pass_.position && !dropped.remembered) {
    statistics_.not_stored += dropped.bytes;
  }
}

void PassExecutor::put(Id state, StateTier tier) {
  Bytes bytes = 0;
  states_.encode(held_.slot(state), [&](const ArrayView& array) {
    context_.account.reserve(tiers_.settings().room(array), state);
    if (keeper_.is_on()) keeper_.keep_put(state, tier, array);
    if (!keeper_.is_on() || tier != StateTier::disk) bytes = tiers_.put(tier, pass_.first + state, array);
  });
  held_.count_put(state);
  if (actions().limit()) sizes_.accept_in_tier(state, tier, bytes);
}

void PassExecutor::get(Id state, StateTier tier) {
  const bool last = actions().is_last_get();
  if (tier == StateTier::disk) {
    tiers_.prefetch(actions().wanted_from_disk(2), pass_.first);
  }
  const bool stays = keeper_.is_on() && tier == StateTier::disk;  // until a gradient is there that makes it unnecessary
  if (last && is_dropped_next(actions().state_value(state))) {
    if (!stays) tiers_.erase(tier, pass_.first + state);  // the schedule discards it
  } else {
    Array array = tiers_.get(tier, pass_.first + state, last && !stays);
    const auto bytes = static_cast<Bytes>(array.bytes());
    context_.account.reserve(2 * bytes, state);
    context_.account.add(bytes);
    const Id slot = states_.decode(std::move(array));
    held_.hold(state, slot, states_.bytes(slot));
    context_.account.subtract(bytes);
  }
  held_.count_get(state, last);
}

}  // namespace reprise::internal
