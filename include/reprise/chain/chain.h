// A chain is checkpointing (recomputation of evicted states) for the caller's own closures and arrays.
//
//   Chain<std::vector<float>> chain(
//       48, [&](int layer, const std::vector<float>& x) { return net[layer].forward(x); },
//       [&](int layer, const std::vector<float>& x, std::vector<float> gradient) {
//         return net[layer].backward(x, std::move(gradient));
//       });
//   chain.schedule(schedule::every(8));
//   const auto y = chain.forward(x);
//   const auto gradient = chain.backward(loss_gradient(y));
//
// `forward` makes the state after a layer from the state before it. `backward` gets the state before the layer again,
// and makes the gradient with respect to it. In between, the chain remembers the states that its schedule chooses,
// evicts the others, and replays forward from the nearest remembered state when backward needs one. Forward has to
// give the same result every time.
//
// Layers are positions, 0..n-1; closures get the number that the caller's list has at that position. State k is the one
// before layer k: state 0 is the input, state n the result. A state "after layer k" is state k+1.
//
// If the caller has the loop over the layers, see loop.h.
//
// A chain is for one thread. When a closure throws, the exception reaches the caller, the pass is over, everything that
// was remembered is released, and the chain can be run again. (If recompute() or measure() had called it, a pass that
// is open goes on.)
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "reprise/chain/any_chain.h"
#include "reprise/chain/internal/typed_states.h"
#include "reprise/chain/state.h"

namespace reprise {

template <class State, class Gradient, class Tape>
class ChainLoop;

template <class State, class Gradient = State, class Tape = NoTape>
class Chain : public AnyChain {
  static_assert(Countable<State>,
                "a chain needs to know the bytes of its states: specialize reprise::StateTraits<State> with "
                "`static Bytes bytes(const State&)`");
  static constexpr bool tapes = !std::is_same_v<Tape, NoTape>;
  static_assert(!tapes || Countable<Tape>,
                "a chain needs to know the bytes of its tapes: specialize reprise::StateTraits<Tape> with "
                "`static Bytes bytes(const Tape&)`");

 public:
  // The forward closure: (layer, state before it) -> state after it. With tapes it also gets a Tape*, to be filled
  // unless it is null: then this layer's backward is not next, and the tape would be evicted.
  //
  // Two other kinds serve large states, which should not be allocated in every step:
  //   void(int layer, State& state[, Tape*])  changes the state in place, from the one before the layer to the one
  //     after it. The chain copies a state first if it is needed afterwards, and otherwise does not.
  //   void(int layer, const State& before, State& after[, Tape*])  overwrites `after`, which is a state that is not
  //     needed any more, or a copy of `before` if there is none.
  // With these the chain does not free the states that it evicts. It holds them as spares and copies into them:
  // after the first pass nothing is allocated. Together with what is stored, spares are never more than the most
  // that was ever stored. schedule::budget counts all bytes, so with it there are none.
  using Forward = typename internal::ClosureKinds<State, Gradient, Tape>::ByValue;
  // The backward closure: (layer, state before it, tape if there are tapes, gradient after it) -> gradient before it.
  // nullptr: the chain runs forward only.
  using Backward = typename internal::ClosureKinds<State, Gradient, Tape>::Backward;

  template <class ForwardClosure, class BackwardClosure>
  Chain(ChainLayers layers, ForwardClosure forward, BackwardClosure backward)
      : AnyChain(std::move(layers), tapes,
                 std::make_unique<Typed>(checked_forward(std::move(forward)), checked_backward(std::move(backward)))) {}

  // ---- settings -----------------------------------------------------------------------------------------------------

  // Sets a codec: states are remembered coded. The result of forward stays the same; states that backward gets, and
  // those that are replayed, come from decoded states.
  void codec(const Codec& codec) {
    static_assert(Codable<State>,
                  "codecs need to see states as arrays: specialize reprise::StateTraits<State> with "
                  "`static ArrayView encode(const State&)` and `static State decode(Array)`");
    use_codec(codec);
  }
  [[nodiscard]] const Codec* codec() const { return used_codec(); }  // null: none

  // Sets a disk for schedules that use one. `transit` is the bytes of memory for states on their way to and from it;
  // empty: as much as four states like the first take, one of which is being coded. Writing and reading ahead go on in
  // the background. A state that takes more than `transit` to be coded is written as it is; so are all states with
  // `keep` and a schedule that limits memory. store_statistics(StateTier::disk).kept_exactly counts them.
  //
  // With `keep` the pass outlives the process: see resume().
  void disk(DiskTier tier, std::optional<Bytes> transit = std::nullopt) {
    static_assert(Codable<State>,
                  "a disk needs to see states as arrays: specialize reprise::StateTraits<State> with "
                  "`static ArrayView encode(const State&)` and `static State decode(Array)`");
    use_disk(std::move(tier), transit);
  }
  [[nodiscard]] const std::optional<DiskTier>& disk() const { return used_disk(); }

  // Goes on with the pass that a process left in the folder of disk({.folder = ..., .keep = true}), if there is one.
  // The program is the same every time:
  //
  //   chain.disk({.folder = "run", .keep = true});
  //   chain.resume();
  //   const auto y = chain.forward(x);
  //   const auto gradient = chain.backward(loss_gradient(y));
  //
  // While a pass goes on, every state that the schedule remembers in forward is also written to the folder, and so are
  // the result, and in backward the gradient at each of these states; then the states behind it are removed. After a
  // crash at any moment, resume() finds them, `forward` goes on from the last state or returns the result that is
  // there, and `backward` goes on from the last gradient. They end with the same bits, whatever the schedule is now.
  // What was done since the last state or gradient is done again. A pass that is over stays until the next one begins.
  //
  // The folder is trusted: what is in it goes into closures and into the result. It has to belong to this user, and
  // others must not be able to write to it (see DiskTier). A state there of a type that the closures cannot take, of
  // another size where sizes were set or measured, and an input that is not that of the pass are ChainErrors. So is, in
  // backward, a state that forward does not make once more; then the pass is removed. The result, gradients, and a
  // state that a forward closure is given before that cannot be checked.
  //
  // Every file is read and checked first. Throws DiskError with the name of a file that is damaged or not of a store,
  // and ChainError if the pass is one of another chain: of another number of layers or other numbers, or with another
  // fingerprint, a number of the caller's for everything else that matters, such as parameters. `forward` then throws
  // ChainError for another input, and `backward` for another gradient; a pass that was over is removed for another
  // input. Without resume(), `forward` throws ChainError if another process has left a pass in the folder, so that it
  // is not lost by mistake; clear() removes it.
  //
  // Keeping needs a known number of layers, exact codecs, and the chain's own loop. If a gradient cannot be coded,
  // backward begins again. When a closure throws, what was kept stays, and resume() goes on with it as well.
  //
  // `disk.budget` has to have room for all that is kept at the same time: these states, the result and a gradient, or
  // two. `forward` throws BadOption before any layer runs if it does not. Unless sizes are known, states are taken to
  // be as large as the input, and gradients always as their states; what turns out larger and finds no room is a
  // ChainError, and what was kept by then stays. A pass that was resumed keeps states as far as there is room.
  ChainResume resume(std::uint64_t fingerprint = 0) {
    static_assert(Codable<State>,
                  "a pass that is resumed is on disk, which needs to see states as arrays: specialize "
                  "reprise::StateTraits<State> with `static ArrayView encode(const State&)` and `static State "
                  "decode(Array)`");
    return resume_pass(fingerprint);
  }

  // Runs all layers forward once and measures bytes and costs (in seconds) for the schedules that need them, those of
  // the codec and the disk included if they are set. A gradient is assumed to be as large as its state, and backward of
  // a layer to cost twice its forward.
  void measure(const State& input) {
    typed().lend(input);
    measure_layers();
  }

  // ---- all layers ---------------------------------------------------------------------------------------------------

  // Runs all layers, or those from position `first` on, and returns the state after the last one. `input` is the state
  // before the first of them, at which backward then ends. Throws ChainError if there is no such layer.
  [[nodiscard]] State forward(State input, Id first = 0) {
    begin_forward(first);
    return typed().take(run_forward(typed().put(std::move(input))));
  }
  // Runs layers, at least one, until `done`, which is called after each layer, returns true. For a number of layers
  // that is not known.
  [[nodiscard]] State forward_until(State input, const std::function<bool(Id position, const State&)>& done) {
    begin_forward_until();
    const auto is_done = [&](Id position, Id state) { return done(position, typed()[state]); };
    return typed().take(run_forward_until(typed().put(std::move(input)), is_done));
  }
  // Returns the gradient with respect to the input of forward. Throws ChainError unless all layers have run forward
  // since the last time.
  Gradient backward(Gradient gradient) {
    begin_backward();
    typed().work_on(gradient);
    run_backward();
    return gradient;
  }

  // Takes back a state that forward has returned, so that its memory is used again by closures that write to a state.
  void give_back(State state) { typed().give_back(std::move(state)); }

  // ---- states by hand -----------------------------------------------------------------------------------------------

  // Remembers a state after this layer, in addition to those of the schedule, until a new pass begins. Backward without
  // a forward of the chain starts from these states and from `save_input`. A state saved again replaces the one from
  // before. States saved by hand are coded if the chain has a codec, and by_hand() sets a maximum for them (one more is
  // a ChainError) and whether they are on disk.
  void save(Id position, State state) {
    require_layer(position);
    save_state(position + 1, typed().put(std::move(state)));
  }
  void save_input(State state) { save_state(0, typed().put(std::move(state))); }
  // Returns a copy of the state after this layer. Throws ChainError if it is not remembered.
  [[nodiscard]] State state(Id position) {
    require_copies();
    return typed().take(copy_state(position));
  }
  // Returns the state after any layer, recomputed from the nearest remembered one. Throws ChainError if there is none.
  [[nodiscard]] State recompute(Id position) {
    require_copies();
    return typed().take(recompute_state(position));
  }

 private:
  friend class ChainLoop<State, Gradient, Tape>;
  using Typed = internal::TypedStates<State, Gradient, Tape>;
  [[nodiscard]] Typed& typed() { return static_cast<Typed&>(states()); }
  static constexpr void require_copies() {
    static_assert(Clonable<State>,
                  "a state that stays remembered is given away as a copy: specialize reprise::StateTraits<State> with "
                  "`static State clone(const State&)`");
  }

  template <class F>
  [[nodiscard]] static typename Typed::Forward checked_forward(F forward) {
    using Kinds = internal::ClosureKinds<State, Gradient, Tape>;
    constexpr bool known =
        Kinds::template is_by_value<F> || Kinds::template is_in_place<F> || Kinds::template is_into<F>;
    static_assert(known || tapes,
                  "the forward closure of a chain is State(int layer, const State& before), or void(int layer, State&) "
                  "and works in place, or void(int layer, const State& before, State& after)");
    static_assert(known || !tapes,
                  "the forward closure of a chain with tapes is State(int layer, const State& before, Tape*), or "
                  "void(int layer, State&, Tape*) and works in place, or void(int layer, const State& before, State& "
                  "after, Tape*)");
    static_assert(!known || Kinds::template is_by_value<F> || Clonable<State>,
                  "a forward closure that writes to a state needs copies: specialize reprise::StateTraits<State> with "
                  "`static State clone(const State&)`");
    typename Typed::Forward result;
    if constexpr (Kinds::template is_by_value<F>) {
      result.by_value = std::move(forward);
    } else if constexpr (Kinds::template is_in_place<F>) {
      result.in_place = std::move(forward);
    } else if constexpr (Kinds::template is_into<F>) {
      result.into = std::move(forward);
    }
    if (!result) throw BadOption("[chain] the forward closure is empty");
    return result;
  }
  template <class B>
  [[nodiscard]] static Backward checked_backward(B backward) {
    constexpr bool known = internal::ClosureKinds<State, Gradient, Tape>::template is_backward<B>;
    static_assert(known || tapes,
                  "the backward closure of a chain is Gradient(int layer, const State& before, Gradient after)");
    static_assert(known || !tapes,
                  "the backward closure of a chain with tapes is Gradient(int layer, const State& before, const Tape&, "
                  "Gradient after)");
    if constexpr (known) return Backward(std::move(backward));
    return {};
  }
};

}  // namespace reprise
