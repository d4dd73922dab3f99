// Holds a chain's states of the caller's type, and runs the caller's closures. No program needs to name what is
// declared here.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/chain/internal/chain_states.h"
#include "reprise/chain/state.h"

namespace reprise::internal {

// Holds values in numbered slots. They stay where they are until they are dropped, and slots are used again.
template <class T>
class Slots {
 public:
  [[nodiscard]] Id put(T&& value) {
    if (free_count_ == 0) add_chunk();
    const Id slot = free_[free_count_ - 1];
    at(slot).emplace(std::move(value));
    --free_count_;
    return slot;
  }
  [[nodiscard]] const T& operator[](Id slot) const { return *at(slot); }
  [[nodiscard]] T& operator[](Id slot) { return *at(slot); }
  void replace(Id slot, T&& value) { at(slot).emplace(std::move(value)); }
  [[nodiscard]] T take(Id slot) {
    T value = std::move(*at(slot));
    drop(slot);
    return value;
  }
  void drop(Id slot) noexcept {
    at(slot).reset();
    free_[free_count_++] = slot;
  }
  void clear() noexcept {
    if (free_count_ == free_.size()) return;
    for (free_count_ = 0; free_count_ < free_.size();) drop(static_cast<Id>(free_count_));
  }

 private:
  // About a page, so that a few large values do not take the room of many.
  static constexpr std::size_t chunk_size = std::bit_floor(std::max<std::size_t>(4096 / sizeof(std::optional<T>), 1));
  using Chunk = std::array<std::optional<T>, chunk_size>;

  [[nodiscard]] std::optional<T>& at(Id slot) const {
    const auto number = static_cast<std::size_t>(slot);
    return (*chunks_[number / chunk_size])[number % chunk_size];
  }
  [[gnu::noinline]] void add_chunk() {  // seldom, so that `put` stays small
    const std::size_t slots = free_.size();
    chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
    free_.resize(slots + chunk_size);
    for (std::size_t k = 0; k < chunk_size; ++k) free_[k] = static_cast<Id>(slots + chunk_size - 1 - k);
    free_count_ = chunk_size;
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Id> free_;  // the first ones, with room for all
  std::size_t free_count_ = 0;
};

// The kinds of closures of a chain. `Tape*` is there with tapes only.
template <class State, class Gradient, class Tape>
struct ClosureKinds {
  static constexpr bool tapes = !std::is_same_v<Tape, NoTape>;
  using ByValue = std::conditional_t<tapes, std::function<State(int, const State&, Tape*)>,
                                     std::function<State(int, const State&)>>;
  using InPlace = std::conditional_t<tapes, std::function<void(int, State&, Tape*)>, std::function<void(int, State&)>>;
  using Into = std::conditional_t<tapes, std::function<void(int, const State&, State&, Tape*)>,
                                  std::function<void(int, const State&, State&)>>;
  using Backward = std::conditional_t<tapes, std::function<Gradient(int, const State&, const Tape&, Gradient)>,
                                      std::function<Gradient(int, const State&, Gradient)>>;

  template <class F, class... Arguments>
  static constexpr bool gives_state = [] {
    if constexpr (std::is_invocable_v<F&, Arguments...>)
      return std::is_convertible_v<std::invoke_result_t<F&, Arguments...>, State>;
    return false;
  }();
  template <class F, class... Arguments>
  static constexpr bool gives_nothing = [] {
    if constexpr (std::is_invocable_v<F&, Arguments...>) return std::is_void_v<std::invoke_result_t<F&, Arguments...>>;
    return false;
  }();

  template <class F>
  static constexpr bool is_by_value =
      tapes ? gives_state<F, int, const State&, Tape*> : gives_state<F, int, const State&>;
  template <class F>
  static constexpr bool is_in_place =
      tapes ? gives_nothing<F, int, State&, Tape*> && !std::is_invocable_v<F&, int, const State&, Tape*>
            : gives_nothing<F, int, State&> && !std::is_invocable_v<F&, int, const State&>;
  template <class F>
  static constexpr bool is_into =
      tapes ? gives_nothing<F, int, const State&, State&, Tape*> &&
                  !std::is_invocable_v<F&, int, const State&, const State&, Tape*>
            : gives_nothing<F, int, const State&, State&> && !std::is_invocable_v<F&, int, const State&, const State&>;
  template <class B>
  static constexpr bool is_backward = std::is_same_v<B, std::nullptr_t> || std::is_constructible_v<Backward, B>;
};

template <class State, class Gradient, class Tape>
class TypedStates final : public ChainStates {
  using Kinds = ClosureKinds<State, Gradient, Tape>;
  static constexpr bool tapes = Kinds::tapes;
  using Traits = StateTraits<State>;

 public:
  // Only one of the three is not empty.
  struct Forward {
    typename Kinds::ByValue by_value;
    typename Kinds::InPlace in_place;
    typename Kinds::Into into;
    [[nodiscard]] explicit operator bool() const { return by_value || in_place || into; }
  };

  TypedStates(Forward forward, typename Kinds::Backward backward)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

  // ---- the side of the caller ----

  [[nodiscard]] Id put(State&& state) { return states_.put(std::move(state)); }
  [[nodiscard]] State take(Id state) { return states_.take(state); }
  [[nodiscard]] const State& operator[](Id state) const { return state == lent ? *lent_ : states_[state]; }
  void lend(const State& state) { lent_ = &state; }            // for the call that follows
  void work_on(Gradient& gradient) { gradient_ = &gradient; }  // likewise
  // Takes back the memory of a state, for closures that write to one.
  void give_back(State&& state) { spares_.push_back(std::move(state)); }

  // ---- the side of the chain ----

  Made forward(int number, Id state, bool with_tape) override {
    std::optional<Tape> tape;
    if constexpr (tapes) {
      if (with_tape) tape.emplace();
    }
    if (forward_.by_value) return hold(call_by_value(number, (*this)[state], tape), tape);
    State made = copy_of((*this)[state], bool(forward_.in_place));
    call(number, forward_.in_place ? nullptr : &(*this)[state], made, tape);
    return hold(std::move(made), tape);
  }
  bool is_in_place() const override { return bool(forward_.in_place); }
  bool is_by_value() const override { return bool(forward_.by_value); }
  Made advance(int number, Id state, bool with_tape) override {
    std::optional<Tape> tape;
    if constexpr (tapes) {
      if (with_tape) tape.emplace();
    }
    State& before = states_[state];
    const Bytes replaced = Traits::bytes(before);
    if (forward_.in_place) {
      call(number, nullptr, before, tape);
      return {state, put_tape(tape), Traits::bytes(before), replaced};
    }
    State made = call_by_value(number, before, tape);
    const Bytes bytes = Traits::bytes(made);
    states_.replace(state, std::move(made));
    return {state, put_tape(tape), bytes, replaced};
  }
  bool has_backward() const override { return bool(backward_); }
  void backward(int number, Id state, Id tape) override {
    if constexpr (tapes) {
      *gradient_ = backward_(number, (*this)[state], tapes_[tape], std::move(*gradient_));
    } else {
      *gradient_ = backward_(number, (*this)[state], std::move(*gradient_));
    }
  }

  Bytes bytes(Id state) const override { return Traits::bytes((*this)[state]); }
  Bytes tape_bytes(Id tape) const override {
    if constexpr (tapes) return StateTraits<Tape>::bytes(tapes_[tape]);
    return 0;
  }
  std::optional<Bytes> gradient_bytes() const override {
    if constexpr (Countable<Gradient>) return StateTraits<Gradient>::bytes(*gradient_);
    return std::nullopt;
  }
  Bytes drop(Id state) override {
    const Bytes bytes = Traits::bytes(states_[state]);
    if (hold_spares_) {
      spares_.push_back(states_.take(state));
    } else {
      states_.drop(state);
    }
    return bytes;
  }
  Bytes drop_tape(Id tape) override {
    const Bytes bytes = tape_bytes(tape);
    tapes_.drop(tape);
    return bytes;
  }
  void clear() noexcept override {
    states_.clear();
    tapes_.clear();
  }
  void hold_spares(bool hold) override {
    hold_spares_ = hold && !forward_.by_value;
    if (!hold_spares_) spares_.clear();
  }
  Bytes spare_bytes() const override {
    Bytes sum = 0;
    for (const State& spare : spares_) sum += Traits::bytes(spare);
    return sum;
  }

  Id clone(Id state) override {
    if constexpr (Clonable<State>) return put(copy_of((*this)[state], true));
    return nowhere;
  }
  void encode(Id state, const std::function<void(const ArrayView&)>& use) const override {
    if constexpr (Codable<State>) use(Traits::encode((*this)[state]));
  }
  Id decode(Array array) override {
    if constexpr (Codable<State>) return put(Traits::decode(std::move(array)));
    return nowhere;
  }
  bool is_codable() const override { return Codable<State>; }
  bool is_comparable() const override {
    if constexpr (Codable<State> && requires {
                    { Traits::comparable } -> std::convertible_to<bool>;
                  })
      return Traits::comparable;
    return false;
  }

  void encode_gradient(const std::function<void(const ArrayView&)>& use) const override {
    if constexpr (Codable<Gradient>) use(StateTraits<Gradient>::encode(*gradient_));
  }
  void decode_gradient(Array array) override {
    if constexpr (Codable<Gradient>) *gradient_ = StateTraits<Gradient>::decode(std::move(array));
  }
  bool is_gradient_codable() const override { return Codable<Gradient>; }

 private:
  [[nodiscard]] Id put_tape(std::optional<Tape>& tape) { return tape ? tapes_.put(std::move(*tape)) : nowhere; }
  [[nodiscard]] Made hold(State&& made, std::optional<Tape>& tape) {
    const Bytes bytes = Traits::bytes(made);
    const Id slot = put(std::move(made));
    return {slot, put_tape(tape), bytes};
  }
  [[nodiscard]] State call_by_value(int number, const State& from, std::optional<Tape>& tape) {
    if constexpr (tapes) {
      return forward_.by_value(number, from, tape ? &*tape : nullptr);
    } else {
      return forward_.by_value(number, from);
    }
  }
  // Calls a closure that writes to a state. `from` is null if the closure works in place.
  void call(int number, const State* from, State& to, std::optional<Tape>& tape) {
    if constexpr (tapes) {
      Tape* const wanted = tape ? &*tape : nullptr;
      from ? forward_.into(number, *from, to, wanted) : forward_.in_place(number, to, wanted);
    } else {
      from ? forward_.into(number, *from, to) : forward_.in_place(number, to);
    }
  }
  // Returns a state to write to: a spare one if there is one, and otherwise a copy of `state`. `contents`: with the
  // contents of `state`.
  [[nodiscard]] State copy_of(const State& state, bool contents) {
    if constexpr (Clonable<State>) {
      if (spares_.empty()) return Traits::clone(state);
      State copy = std::move(spares_.back());
      spares_.pop_back();
      if (!contents) return copy;
      if constexpr (requires { Traits::copy(state, copy); }) {
        Traits::copy(state, copy);
      } else {
        copy = Traits::clone(state);
      }
      return copy;
    } else {
      std::abort();  // Chain has refused such a closure
    }
  }

  const Forward forward_;
  const typename Kinds::Backward backward_;
  Slots<State> states_;
  Slots<Tape> tapes_;
  std::vector<State> spares_;
  bool hold_spares_ = false;
  const State* lent_ = nullptr;
  Gradient* gradient_ = nullptr;
};

}  // namespace reprise::internal
