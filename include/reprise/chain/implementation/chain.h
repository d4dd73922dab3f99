// Executes the actions of a chain's plan. Only chain.h includes this file.
#pragma once

#include "reprise/chain/chain.h"

namespace reprise {

// ---- passes ----

template <class State, class Gradient, class Tape>
template <class Work>
decltype(auto) Chain<State, Gradient, Tape>::part_of_pass(Work&& work) {
  try {
    return work();
  } catch (...) {
    release();
    throw;
  }
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::start(bool one_at_a_time) {
  release();
  reset_statistics();
  begin_pass();
  one_at_a_time_ = one_at_a_time;
  cost_.reset();
  states_.resize(static_cast<std::size_t>(layer_count()) + 1);
  if constexpr (tapes) tapes_.resize(layer_count());
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::release() noexcept {
  states_.clear();
  tapes_.clear();
  saved_.clear();
  borrowed_ = nullptr;
  borrowed_state_ = nowhere;
  result_.reset();
  gradient_.reset();
  end_pass();
}

template <class State, class Gradient, class Tape>
State Chain<State, Gradient, Tape>::forward(State input) {
  require_known(true, "forward of all layers");
  return part_of_pass([&] {
    start(false);
    if (layer_count() == 0) {
      turn(0);
      return State(std::move(input));
    }
    hold(0, std::move(input));
    for (Id layer = 0; layer < layer_count(); ++layer) execute_until(layer);
    execute_what_follows(layer_count() - 1);
    turn(layer_count());
    return finish_forward();
  });
}

template <class State, class Gradient, class Tape>
State Chain<State, Gradient, Tape>::forward_until(State input,
                                                  const std::function<bool(Id position, const State&)>& done) {
  require_known(false, "forward until something");
  return part_of_pass([&] {
    start(false);
    hold(0, std::move(input));
    Id layer = 0;
    do {
      execute_until(layer);
    } while (!done(layer, *states_[layer + 1]) && ++layer >= 0);
    execute_what_follows(layer);
    give_away(layer + 1);
    turn(layer + 1);
    return finish_forward();
  });
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::give_away(Id state) {
  count_bytes(-StateTraits<State>::bytes(*states_[state]));
  count_form(state, -1);
  result_ = std::move(states_[state]);
  states_[state].reset();
}

// The last state goes to the caller.
template <class State, class Gradient, class Tape>
State Chain<State, Gradient, Tape>::finish_forward() {
  State result = std::move(*result_);
  result_.reset();
  return result;
}

template <class State, class Gradient, class Tape>
State Chain<State, Gradient, Tape>::forward(Id position, const State& input, std::optional<double> cost) {
  static_assert(Clonable<State>,
                "one layer at a time, the chain remembers copies of the caller's states: specialize "
                "reprise::StateTraits<State> with `static State clone(const State&)`");
  if (position != 0) require_next(position, "forward");
  return part_of_pass([&] {
    if (position == 0) {
      if (layers_.known()) require_layer(0);
      start(true);
    }
    borrowed_ = &input;
    borrowed_state_ = position;
    count_form(position, 1);
    cost_ = cost;
    execute_until(position);
    execute_what_follows(position);
    if (borrowed_) {
      count_form(position, -1);
      borrowed_ = nullptr;
      borrowed_state_ = nowhere;
      hold(position, StateTraits<State>::clone(input));
    }
    return finish_forward();
  });
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::ready_for_backward() {
  if (phase_ == Phase::backward) return;
  if (phase_ == Phase::forward && one_at_a_time_ && (!layers_.known() || position_ == layer_count()))
    return turn(position_);
  if (phase_ == Phase::idle && saved_.contains(0) && layers_.known()) {
    std::vector<Id> remembered;
    states_.resize(static_cast<std::size_t>(layer_count()) + 1);
    if constexpr (tapes) tapes_.resize(layer_count());
    for (auto& [state, what] : saved_) {
      remembered.push_back(state);
      states_[state].emplace(std::move(what));
    }
    saved_.clear();
    return begin_backward(remembered);
  }
  fail(position_, "backward was asked for before forward was over");
}

template <class State, class Gradient, class Tape>
Gradient Chain<State, Gradient, Tape>::backward(Gradient gradient) {
  ready_for_backward();
  while (position_ > 0) gradient = backward(position_ - 1, std::move(gradient));
  release();
  return gradient;
}

template <class State, class Gradient, class Tape>
Gradient Chain<State, Gradient, Tape>::backward(Id position, Gradient gradient) {
  ready_for_backward();
  require_next(position, "backward");
  return part_of_pass([&] {
    gradient_.emplace(std::move(gradient));
    execute_until(form_.backward_moment(position));
    execute_what_follows(position);
    position_ = position;
    Gradient result = std::move(*gradient_);
    gradient_.reset();
    if (position == 0) release();
    return result;
  });
}

// ---- actions ----

// Executes the actions up to the run of this moment, which is included.
template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::execute_until(Id moment) {
  if (phase_ == Phase::forward) pass_->prepare_forward();
  const std::vector<Action>& actions = pass_->actions();
  while (true) {
    const Action& action = actions[next_++];
    execute(action);
    if (action.kind == Action::Kind::run && action.target == moment) return;
  }
}

// Executes what the plan does with the state before this layer right after the layer has run.
template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::execute_what_follows(Id position) {
  const std::vector<Action>& actions = pass_->actions();
  for (; next_ < actions.size(); ++next_) {
    const Action& action = actions[next_];
    const bool about_this = is_tape(action.target) || state_of(action.target) <= position;
    const bool ends = action.kind == Action::Kind::drop && state_of(action.target) == layer_count();
    if (action.kind != Action::Kind::drop && action.kind != Action::Kind::put) return;
    if (!about_this && !ends) return;
    execute(action);
  }
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::execute(const Action& action) {
  switch (action.kind) {
    case Action::Kind::run:
      if (phase_ == Phase::forward) return run_forward(action.target, false);
      return run_backward(2 * layer_count() - 1 - action.target);
    case Action::Kind::replay: return run_forward(action.target, true);
    case Action::Kind::drop: return drop(action.target);
    case Action::Kind::put: return put(state_of(action.target), place_of(action.tier));
    case Action::Kind::get: return get(state_of(action.target), place_of(action.tier));
  }
}

template <class State, class Gradient, class Tape>
State Chain<State, Gradient, Tape>::call_forward(Id layer, const State& input, Tape* tape) {
  ++statistics_.forward_calls;
  if constexpr (tapes) {
    return forward_(layers_.number(layer), input, tape);
  } else {
    (void)tape;
    return forward_(layers_.number(layer), input);
  }
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::run_forward(Id layer, bool replay) {
  // The tape is wanted unless the plan drops it at once.
  std::optional<Tape> tape;
  if constexpr (tapes) {
    const std::vector<Action>& actions = pass_->actions();
    const Action at_once = Action::drop(form_.tape_value(layer));
    if (next_ >= actions.size() || actions[next_] != at_once) tape.emplace();
  }
  State made = call_forward(layer, held(layer), tape ? &*tape : nullptr);
  const Bytes bytes = StateTraits<State>::bytes(made);
  if (replay) {
    ++statistics_.replays;
  } else {
    position_ = layer + 1;
    if (!layers_.known()) {
      form_.layers.emplace_back();
      states_.resize(static_cast<std::size_t>(layer) + 2);
      if constexpr (tapes) tapes_.resize(static_cast<std::size_t>(layer) + 1);
    }
    if (cost_) form_.layers[layer].forward_cost = *cost_;
    pass_->ran(form_.layers[layer].forward_cost);
  }
  require_size(layer + 1, bytes);
  if constexpr (tapes) {
    if (tape) {
      count_bytes(StateTraits<Tape>::bytes(*tape));
      tapes_[layer] = std::move(tape);
    }
  }
  // The last state is the caller's.
  const bool last = layers_.known() || phase_ == Phase::backward ? layer + 1 == layer_count() : false;
  if (!replay && (one_at_a_time_ || last)) {
    result_.emplace(std::move(made));
  } else if (!last) {
    hold(layer + 1, std::move(made));
  }
  tell(replay ? ChainProgress::Phase::replay : ChainProgress::Phase::forward, layer);
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::run_backward(Id layer) {
  ++statistics_.backward_calls;
  const int number = layers_.number(layer);
  if constexpr (tapes) {
    *gradient_ = backward_(number, held(layer), *tapes_[layer], std::move(*gradient_));
  } else {
    *gradient_ = backward_(number, held(layer), std::move(*gradient_));
  }
  tell(ChainProgress::Phase::backward, layer);
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::drop(Id value) {
  const Id state = state_of(value);
  if (is_tape(value)) {
    if constexpr (tapes) {
      if (!tapes_[state]) return;
      count_bytes(-StateTraits<Tape>::bytes(*tapes_[state]));
      tapes_[state].reset();
    }
    return;
  }
  Bytes bytes = 0;
  if (state == borrowed_state_) {
    bytes = StateTraits<State>::bytes(*borrowed_);
    borrowed_ = nullptr;
    borrowed_state_ = nowhere;
  } else if (holds(state)) {
    bytes = StateTraits<State>::bytes(*states_[state]);
    count_bytes(-bytes);
    states_[state].reset();
  } else {
    return;
  }
  count_form(state, -1);
  if (phase_ == Phase::forward && state < position_ && !is_stored(state)) statistics_.not_stored += bytes;
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::put(Id state, Place place) {
  if constexpr (Codable<State>) {
    places_.put(place, state, StateTraits<State>::encode(held(state)));
    count_form(state, 1);
    count_places();
  }
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::get(Id state, Place place) {
  if constexpr (Codable<State>) {
    const std::size_t action = next_ - 1;
    const std::vector<Action>& actions = pass_->actions();
    const bool last = pass_->is_last_get(action);
    if (place == Place::disk) {
      ++disk_reads_;
      places_.prefetch(pass_->wanted_from_disk(disk_reads_, 2));
    }
    if (next_ < actions.size() && actions[next_] == Action::drop(form_.state_value(state)) && last) {
      places_.erase(place, state);  // it was given up and is not wanted
    } else {
      hold(state, StateTraits<State>::decode(places_.get(place, state, last)));
    }
    if (last) count_form(state, -1);
    count_places();
  }
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::hold(Id state, State&& what) {
  count_bytes(StateTraits<State>::bytes(what));
  if (!holds(state)) count_form(state, 1);
  states_[state].emplace(std::move(what));
}

// ---- states by hand ----

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::hold_by_hand(Id state, State&& what) {
  if (const auto old = saved_.find(state); old != saved_.end()) {
    count_bytes(-StateTraits<State>::bytes(old->second));
  } else {
    count_form(state, 1);
  }
  count_bytes(StateTraits<State>::bytes(what));
  saved_.insert_or_assign(state, std::move(what));
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::save(Id position, State state) {
  require_layer(position);
  hold_by_hand(position + 1, std::move(state));
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::save_input(State state) {
  hold_by_hand(0, std::move(state));
}

template <class State, class Gradient, class Tape>
const State* Chain<State, Gradient, Tape>::at_hand(Id state) const {
  if (holds(state)) return &*states_[state];
  const auto by_hand = saved_.find(state);
  return by_hand == saved_.end() ? nullptr : &by_hand->second;
}

template <class State, class Gradient, class Tape>
bool Chain<State, Gradient, Tape>::remembers(Id position) const {
  require_layer(position);
  return is_stored(position + 1);
}

template <class State, class Gradient, class Tape>
State Chain<State, Gradient, Tape>::state(Id position) {
  static_assert(Clonable<State>,
                "a state that stays remembered is given away as a copy: specialize reprise::StateTraits<State> with "
                "`static State clone(const State&)`");
  require_layer(position);
  const Id state = position + 1;
  if (const State* here = at_hand(state)) return StateTraits<State>::clone(*here);
  if constexpr (Codable<State>) {
    for (const Place place : {Place::packed, Place::disk}) {
      if (places_.contains(place, state)) return StateTraits<State>::decode(places_.get(place, state, false));
    }
  }
  fail(position, "the state after it is not remembered");
}

template <class State, class Gradient, class Tape>
State Chain<State, Gradient, Tape>::recompute(Id position) {
  require_layer(position);
  Id from = position + 1;
  while (from >= 0 && !is_stored(from)) --from;
  if (from < 0) fail(position, "neither the state after it nor any before it is remembered");
  if (from == position + 1) return state(position);
  std::optional<State> made;
  const State* input = at_hand(from);
  if constexpr (Codable<State>) {
    if (!input) {
      const Place place = places_.contains(Place::packed, from) ? Place::packed : Place::disk;
      made.emplace(StateTraits<State>::decode(places_.get(place, from, false)));
      input = &*made;
    }
  }
  for (Id layer = from; layer <= position; ++layer) {
    made = call_forward(layer, *input, nullptr);
    input = &*made;
    ++statistics_.replays;
    tell(ChainProgress::Phase::replay, layer);
  }
  return std::move(*made);
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::clear() {
  release();
  statistics_ = {};
}

template <class State, class Gradient, class Tape>
void Chain<State, Gradient, Tape>::measure(const State& input) {
  require_known(true, "measure");
  using Clock = std::chrono::steady_clock;
  ChainForm form = equal_layers(layer_count());
  form.tapes = tapes;
  form.input = StateTraits<State>::bytes(input);
  std::vector<PlaceTerms> packed, disk;
  const auto measure_places = [&](const State& state) {
    if constexpr (Codable<State>) {
      if (places_.codec()) packed.push_back(places_.measure(Place::packed, StateTraits<State>::encode(state)));
      if (places_.has_disk()) disk.push_back(places_.measure(Place::disk, StateTraits<State>::encode(state)));
    }
  };
  std::optional<State> made;
  const State* state = &input;
  measure_places(input);
  for (Id layer = 0; layer < layer_count(); ++layer) {
    ChainLayerForm& one = form.layers[layer];
    one.gradient = StateTraits<State>::bytes(*state);
    Tape tape;
    const auto start = Clock::now();
    State next = call_forward(layer, *state, tapes ? &tape : nullptr);
    one.forward_cost = std::chrono::duration<double>(Clock::now() - start).count();
    one.backward_cost = 2 * one.forward_cost;
    one.state = StateTraits<State>::bytes(next);
    if constexpr (tapes) one.tape = StateTraits<Tape>::bytes(tape);
    made = std::move(next);
    state = &*made;
    measure_places(*state);
  }
  form.gradient = StateTraits<State>::bytes(*state);
  use_measured(std::move(form), packed, disk);
}

}  // namespace reprise
