// A chain is checkpointing (recomputation of forgotten states) for the caller's own closures and arrays.
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
// forgets the others, and replays forward from the nearest remembered state when backward needs one. Forward has to
// give the same result every time.
//
// Layers are positions, 0..n-1; closures get the number that the caller's list has at that position. State k is the one
// before layer k: state 0 is the input, state n the result. A state "after layer k" is state k+1.
//
// A chain is for one thread. When a closure throws, the exception reaches the caller, the pass is over, everything that
// was remembered is released, and the chain can be run again.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/chain/pass.h"
#include "reprise/chain/places.h"
#include "reprise/chain/schedule.h"
#include "reprise/chain/state.h"
#include "reprise/chain/statistics.h"
#include "reprise/store/codec.h"
#include "reprise/trace/timeline.h"

namespace reprise {

// The layers of a chain.
class ChainLayers {
 public:
  // Makes layers 0..count-1. Throws BadOption for a negative count.
  ChainLayers(int count);
  // Makes layers with these numbers, in any order and as often as wanted.
  ChainLayers(std::vector<int> numbers) : numbers_(std::move(numbers)), known_(true) {}
  // Makes as many layers as it takes, numbered from 0: forward ends when the caller decides.
  [[nodiscard]] static ChainLayers unknown() { return ChainLayers(); }

  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] Id size() const { return static_cast<Id>(numbers_.size()); }
  [[nodiscard]] int number(Id position) const { return known_ ? numbers_[position] : position; }

 private:
  ChainLayers() = default;
  std::vector<int> numbers_;
  bool known_ = false;
};

// The part of a chain that does not depend on the caller's types.
class ChainBase {
 public:
  // Sets the schedule, with effect from the next pass on, as all settings. The default is schedule::every(), and
  // schedule::online(64) for an unknown number of layers.
  void schedule(SchedulePointer);

  // Switches the chain on or off. Off: every state is remembered until backward has used it, nothing is replayed, and
  // nothing is coded or on disk.
  void enabled(bool on) { enabled_ = on; }
  [[nodiscard]] bool enabled() const { return enabled_; }

  // Sets what layers cost and how large their states are, for schedules that need to know. Throws BadOption for another
  // number of layers. See Chain::measure.
  void sizes(ChainForm);
  [[nodiscard]] const ChainForm& sizes() const { return form_; }

  // Sets a function that is called after every closure.
  void observer(std::function<void(const ChainProgress&)> observer) { observer_ = std::move(observer); }

  [[nodiscard]] ChainStatistics statistics() const;
  [[nodiscard]] StoreStatistics store_statistics(Place place) const { return places_.statistics(place); }

  // Return the plan of the pass that goes on, or of the last one, and the trace it is for. A schedule that decides as
  // it goes has a plan when backward has begun. plan() throws ChainError if there is none.
  [[nodiscard]] const Plan& plan() const;
  [[nodiscard]] Trace trace() const { return chain_trace(form_); }

 protected:
  ChainBase(ChainLayers, bool tapes);
  ~ChainBase();

  enum class Phase : std::uint8_t { idle, forward, backward };

  // Begins a new pass. Its script is made if anything has changed since the last one.
  void begin_pass();
  // Ends forward after this many layers.
  void turn(Id layers);
  // Begins backward of a pass that has run forward already, with these states remembered.
  void begin_backward(std::span<const Id> remembered);
  void end_pass();

  // Throw ChainError unless ...
  void require_next(Id position, const char* what) const;  // this layer is the one that is next
  void require_layer(Id position) const;                   // there is such a layer
  void require_known(bool known, const char* what) const;  // the number of layers is, or is not, known
  void require_size(Id state, Bytes bytes) const {         // it is no larger than the plan was made for
    if (sizes_matter_ && bytes > form_.state_bytes(state)) fail_size(state, bytes);
  }
  [[noreturn]] void fail_size(Id state, Bytes bytes) const;
  [[noreturn]] void fail(Id position, const char* why) const;

  // Count what is stored. A state may be stored in several forms at a time: as it is, in places, by hand.
  void count_bytes(Bytes more);
  void count_form(Id state, int more);
  [[nodiscard]] bool is_stored(Id state) const {
    return static_cast<std::size_t>(state) < forms_.size() && forms_[state] > 0;
  }
  void count_places();
  void reset_statistics();
  void tell(ChainProgress::Phase phase, Id position) {
    if (observer_) {
      observer_({phase, position, layers_.number(position), statistics_.replays, statistics_.stored});
    }
  }

  void use_codec(const Codec*);
  void use_disk(DiskTier, std::optional<Bytes> transit, FileSystem*);
  void use_measured(ChainForm, std::span<const PlaceTerms> packed = {}, std::span<const PlaceTerms> disk = {});

  [[nodiscard]] Id layer_count() const { return form_.size(); }  // so far
  [[nodiscard]] Id state_of(Id value) const { return form_.tapes ? value / 2 : value; }
  [[nodiscard]] bool is_tape(Id value) const { return form_.tapes && value % 2 != 0; }
  [[nodiscard]] Place place_of(Id tier) const { return tier == form_.disk ? Place::disk : Place::packed; }

  ChainLayers layers_;
  ChainForm form_;
  SchedulePointer schedule_;
  bool enabled_ = true;
  bool sizes_known_ = false;
  bool sizes_matter_ = false;  // in this pass
  std::function<void(const ChainProgress&)> observer_;
  StatePlaces places_;
  ChainStatistics statistics_;

  // The pass.
  Phase phase_ = Phase::idle;
  std::optional<ChainPass> pass_;
  std::size_t next_ = 0;        // the action that is next
  Id position_ = 0;             // in forward the layer that is next; in backward the number of layers that are left
  std::size_t disk_reads_ = 0;  // so far

 private:
  [[nodiscard]] std::shared_ptr<const ChainScript> script();
  void match_tiers();

  std::shared_ptr<const ChainScript> script_, plain_script_;  // on and off; null: to be made
  std::vector<std::uint8_t> forms_;                           // by state: in how many forms it is stored
  Bytes bytes_ = 0;                                           // stored in no place
};

template <class State, class Gradient = State, class Tape = NoTape>
class Chain : public ChainBase {
  static_assert(Countable<State>,
                "a chain needs to know the bytes of its states: specialize reprise::StateTraits<State> with "
                "`static Bytes bytes(const State&)`");
  static constexpr bool tapes = !std::is_same_v<Tape, NoTape>;
  static_assert(!tapes || Countable<Tape>,
                "a chain needs to know the bytes of its tapes: specialize reprise::StateTraits<Tape> with "
                "`static Bytes bytes(const Tape&)`");

 public:
  // The forward closure: (layer, state before it) -> state after it. With tapes it also gets a Tape*, to be filled
  // unless it is null: then this layer's backward is not next, and the tape would be forgotten.
  using Forward = std::conditional_t<tapes, std::function<State(int, const State&, Tape*)>,
                                     std::function<State(int, const State&)>>;
  // The backward closure: (layer, state before it, tape if there are tapes, gradient after it) -> gradient before it.
  using Backward = std::conditional_t<tapes, std::function<Gradient(int, const State&, const Tape&, Gradient)>,
                                      std::function<Gradient(int, const State&, Gradient)>>;

  Chain(ChainLayers layers, Forward forward, Backward backward)
      : ChainBase(std::move(layers), tapes), forward_(std::move(forward)), backward_(std::move(backward)) {}

  // ---- settings -----------------------------------------------------------------------------------------------------

  // Sets a codec: states are remembered coded. The result of forward stays the same; states that backward gets, and
  // those that are replayed, come from decoded states.
  void codec(const Codec& codec) {
    static_assert(Codable<State>,
                  "codecs need to see states as arrays: specialize reprise::StateTraits<State> with "
                  "`static ArrayView encode(const State&)` and `static State decode(Array)`");
    use_codec(&codec);
  }

  // Sets a disk for schedules that use one. `transit` is the bytes of memory for states on their way to and from it;
  // empty: four times the first state. Writing and reading ahead go on in the background.
  void disk(DiskTier tier, std::optional<Bytes> transit = std::nullopt, FileSystem* files = nullptr) {
    static_assert(Codable<State>,
                  "a disk needs to see states as arrays: specialize reprise::StateTraits<State> with "
                  "`static ArrayView encode(const State&)` and `static State decode(Array)`");
    use_disk(std::move(tier), transit, files);
  }

  // Runs all layers forward once and measures bytes and costs (in seconds) for the schedules that need them, those of
  // the codec and the disk included if they are set. A gradient is assumed to be as large as its state, and backward of
  // a layer to cost twice its forward.
  void measure(const State& input);

  // ---- all layers at once -------------------------------------------------------------------------------------------

  // Runs all layers and returns the state after the last one.
  [[nodiscard]] State forward(State input);
  // Runs layers, at least one, until `done`, which is called after each layer, returns true. For a number of layers
  // that is not known.
  [[nodiscard]] State forward_until(State input, const std::function<bool(Id position, const State&)>& done);
  // Returns the gradient with respect to the input. Throws ChainError unless all layers have run forward since the last
  // time.
  Gradient backward(Gradient gradient);

  // ---- one layer at a time ------------------------------------------------------------------------------------------

  // Runs one layer and returns the state after it. Position 0 begins a new pass, whatever was before. `input` is the
  // result of the position before, and `cost` the cost of the layer, for the schedules that need it. Throws ChainError
  // if another position is next.
  [[nodiscard]] State forward(Id position, const State& input, std::optional<double> cost = std::nullopt);
  // Runs backward of one layer and returns the gradient before it, from the last position that ran forward to 0.
  Gradient backward(Id position, Gradient gradient);

  // ---- states by hand -----------------------------------------------------------------------------------------------

  // Remembers a state after this layer, in addition to those of the schedule, until a new pass begins. Backward without
  // a forward of the chain starts from these states and from `save_input`.
  void save(Id position, State state);
  void save_input(State state);
  // True if the state after this layer is remembered.
  [[nodiscard]] bool remembers(Id position) const;
  // Returns a copy of the state after this layer. Throws ChainError if it is not remembered.
  [[nodiscard]] State state(Id position);
  // Returns the state after any layer, recomputed from the nearest remembered one. Throws ChainError if there is none.
  [[nodiscard]] State recompute(Id position);
  // Forgets everything, statistics included.
  void clear();

 private:
  // Runs a part of a pass; if it throws, the pass is over.
  template <class Work>
  decltype(auto) part_of_pass(Work&& work);
  void start(bool one_at_a_time);
  void release() noexcept;
  State finish_forward();
  void ready_for_backward();

  void execute_until(Id moment);
  void execute_what_follows(Id position);
  void execute(const Action&);
  [[nodiscard]] State call_forward(Id layer, const State& input, Tape* tape);
  void run_forward(Id layer, bool replay);
  void run_backward(Id layer);
  void drop(Id value);
  void put(Id state, Place);
  void get(Id state, Place);

  [[nodiscard]] bool holds(Id state) const { return state < static_cast<Id>(states_.size()) && states_[state]; }
  [[nodiscard]] const State& held(Id state) const { return state == borrowed_state_ ? *borrowed_ : *states_[state]; }
  void hold(Id state, State&& what);
  void give_away(Id state);
  void hold_by_hand(Id state, State&& what);
  [[nodiscard]] const State* at_hand(Id state) const;

  Forward forward_;
  Backward backward_;
  std::vector<std::optional<State>> states_;  // by state: held as it is
  std::vector<std::optional<Tape>> tapes_;    // by layer
  std::map<Id, State> saved_;                 // by state: by hand
  const State* borrowed_ = nullptr;           // a state that the caller has, while its layer runs
  Id borrowed_state_ = nowhere;
  std::optional<State> result_;  // of the layer that ran forward last, on its way to the caller
  std::optional<Gradient> gradient_;
  std::optional<double> cost_;  // of the layer that is running, if the caller gave it
  bool one_at_a_time_ = false;
};

}  // namespace reprise

#include "reprise/chain/implementation/chain.h"
