// The engine of a chain: runs the caller's closures as the plan of a pass says.
//
// A pass goes forward through the layers, turns, and goes backward. The engine executes the actions of its plan one
// after the other: run, replay, drop, put, get. Whoever owns the loop over the layers, the chain or the caller, decides
// only how many actions are executed before it gets control again.
//
// A pass may begin with a later layer, and a pass that is resumed goes through its layers in parts, the last ones
// first: forward from a state that was kept to where the part before ended, and backward. Each part has a plan of its
// own, in which its first layer is number 0; `first_` is to be added to every layer and state that somebody else hears
// of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "chain/held_states.h"
#include "chain/kept_pass.h"
#include "chain/setup.h"
#include "chain/state_tiers.h"
#include "chain/verification.h"
#include "reprise/chain/statistics.h"

namespace reprise::internal {

// States are given and returned by slot: a given one is the engine's, a returned one the caller's to take. When
// anything throws in a pass, the pass is over and everything is released.
class ChainEngine {
 public:
  ChainEngine(ChainLayers layers, bool tapes, ChainStates& states);

  // ---- settings ----

  [[nodiscard]] ChainSetup& setup() { return setup_; }
  [[nodiscard]] const ChainSetup& setup() const { return setup_; }
  [[nodiscard]] const StateTiers& tiers() const { return tiers_; }
  void codec(const Codec&);
  void disk(DiskTier, std::optional<Bytes> transit, FileSystem*);
  void observer(std::function<void(const ChainProgress&)> observer) {
    observer_ = std::move(observer);
    plain_ = plain_ && !observer_;
  }
  [[nodiscard]] const std::function<void(const ChainProgress&)>& observer() const { return observer_; }
  [[nodiscard]] Verification& verification() { return verification_; }
  [[nodiscard]] Verify verify() const { return verification_.when(states_, layers().size()); }
  void by_hand(ByHand options) { by_hand_ = options; }
  [[nodiscard]] const ByHand& by_hand() const { return by_hand_; }
  // Runs all layers forward from the lent state and measures bytes and seconds.
  void measure();

  // ---- a pass whose loop is the engine's ----

  void begin_forward(Id first);
  void begin_forward_until();
  [[nodiscard]] Id forward(Id input);
  [[nodiscard]] Id forward_until(Id input, const std::function<bool(Id position, Id state)>& done);
  void begin_backward();
  void backward();

  // ---- a pass whose loop is the caller's ----

  // `pass` is its number. 0: forward begins a new one, backward takes the one that is open; and 0 it is again when
  // backward is over.
  [[nodiscard]] Id forward_layer(std::uint64_t& pass, std::optional<double> cost);  // from the lent state
  void begin_backward_layer(std::uint64_t pass);
  void backward_layer(std::uint64_t& pass);

  // ---- states by hand ----

  void save(Id state, Id slot);
  [[nodiscard]] bool remembers(Id position) const;
  [[nodiscard]] Id copy(Id position);
  [[nodiscard]] Id recompute(Id position);
  void clear();
  // Throws ChainError unless there is such a layer.
  void require_layer(Id position) const;

  // ---- a pass that was kept ----

  [[nodiscard]] ChainResume resume(std::uint64_t fingerprint);

  // ---- results ----

  [[nodiscard]] ChainStatistics statistics() const { return held_.statistics_now(); }
  [[nodiscard]] const Plan& plan() const;
  [[nodiscard]] Trace trace() const;

 private:
  enum class Phase : std::uint8_t { idle, forward, backward };
  enum class Owner : std::uint8_t { engine, caller };  // of the loop
  class PassGuard;

  void begin(Owner, Id first);
  void open(Id input, Id first, Id end);
  void forward_part(Id input);
  void backward_part();
  void turn();
  void release() noexcept;

  void execute_until(Id layer);
  void execute_what_follows(Id position);
  void execute(const Action&);
  [[nodiscard]] ChainForm form_of_pass() const;
  // Run several layers that are one action: see step_writer.h.
  void run_layers(Id layer, Id more);
  void run_advancing(Id layer, Id more);
  void run_keeping(Id layer, Id more);
  void run_backward(Id layer, Id more);
  void run_forward(Id layer);
  void run_forward_plainly(Id layer);
  // True unless somebody has begun to watch since the pass began, or has saved a state.
  [[nodiscard]] bool goes_plainly() const { return plain_ && !held_.has_saved(); }
  void run_backward(Id layer);
  void drop(Id value);
  void put(Id state, StateTier);
  void get(Id state, StateTier);
  [[nodiscard]] bool drops_next(Id value) {
    const Action* next = pass_->next();
    return next && *next == Action::drop(value);
  }
  [[nodiscard]] ChainStates::Made call_forward(Id layer, Id input, bool with_tape) {
    ++held_.statistics.forward_calls;
    return states_.forward(layers().number(first_ + layer), input, with_tape);
  }
  // Whether the state after this layer may take the slot of the one before it, which is `input`.
  [[nodiscard]] bool may_take_slot(Id layer, Id input);
  [[nodiscard]] ChainStates::Made call_in_place(Id layer, bool replay, bool with_tape);
  void forget_replaced(Id layer, bool replay, Bytes bytes);

  // ---- sizes; chain_engine_sizes.cpp ----

  [[nodiscard]] ChainInput input_terms(Id input, const StateTierSettings&) const;
  // Return false, and drop what was made, if the pass has been planned again because it is larger than the plan was
  // made for.
  [[nodiscard]] bool accept(Id layer, const ChainStates::Made&);
  [[nodiscard]] bool accept_gradient(Id layer);
  void accept_made_gradient(Id layer);
  void accept_coded(Id state, StateTier, Bytes bytes);
  // What the chain may hold is the limit without the gradients that come in and go out of the backward that is next.
  void leave_room_for_gradients();
  // Plans the rest of the pass for these sizes, and begins it again from its input.
  void plan_again(const std::string& why, ChainForm, bool measure);
  // Runs all layers of the form from this state, and writes down their sizes.
  void measure_sizes(ChainForm&, Id input, const StateTierSettings&);
  void tell(ChainProgress::Phase phase, Id position) {
    if (!observer_) return;
    observer_({phase, first_ + position, layers().number(first_ + position), held_.statistics.replays,
               held_.statistics.stored, 0});
  }

  // ---- states by hand; chain_engine_by_hand.cpp ----

  // The tier of states that are saved now; none: as they are.
  [[nodiscard]] std::optional<StateTier> tier_by_hand() const;
  // The key of a state that is saved by hand in a tier, and of any state in a tier.
  [[nodiscard]] static Id saved_key(Id state) { return -1 - state; }
  [[nodiscard]] Id key_of(Id state) const { return adopted_.contains(state) ? saved_key(state) : first_ + state; }
  void bring_saved_to(std::optional<StateTier>);
  [[nodiscard]] std::optional<Id> from_tiers(Id key);
  [[nodiscard]] std::optional<Id> state_from_tiers(Id state);
  // The nearest state, up to this one, that is remembered or is kept from before the part of the pass that goes on.
  [[nodiscard]] std::optional<Id> nearest_remembered(Id state) const;
  // The number of the state after this layer in the pass; below zero if the pass does not have it.
  [[nodiscard]] Id state_after(Id position) const { return position + 1 - (phase_ == Phase::idle ? 0 : first_); }

  // ---- a pass that is kept; chain_engine_kept.cpp ----

  [[nodiscard]] PassRecord record_of(Id input) const;
  void require_keeping() const;
  void begin_kept(Id input);
  // Returns false if a new pass begins instead.
  [[nodiscard]] bool forward_resumed(Id input);
  // Throws BadOption if the part that was opened keeps more than the disk may have. A pass that was resumed does
  // without some of it: see keeps_more_.
  void require_room_to_keep(Id input);
  [[nodiscard]] Bytes most_kept_of_part(Id input) const;
  // Whether states that the schedule remembers are kept, and not only those that it puts on disk.
  [[nodiscard]] bool keeps_remembered() const { return phase_ == Phase::forward && keeps_more_; }
  void keep_if_remembered(Id state);
  void keep_result();
  void keep_seed();
  void keep_gradient(Id state);
  void run_segment_forward();
  // Makes a state of what was kept of it under this key. Throws ChainError if it cannot be one of this pass.
  [[nodiscard]] Id decode_kept(Id state, const Key&);
  void decode_kept_gradient(Id state);
  [[nodiscard]] Array read_kept(Id state, const Key&);
  [[nodiscard]] std::uint64_t fingerprint_of_kept(const ArrayView&) const;
  [[noreturn]] void refuse_kept(const Key&, const std::string& why) const;
  [[nodiscard]] bool keeping() const { return kept_on_; }

  void require_known(bool known, const char* what) const;
  void require_pass(std::uint64_t pass) const;
  void require_forward() const;
  [[noreturn]] void fail_backward() const;

  [[nodiscard]] const ChainLayers& layers() const { return setup_.layers(); }
  // So far: of the part, and of all.
  [[nodiscard]] Id layer_count() const { return pass_ ? pass_->layers() : layers().size(); }
  [[nodiscard]] Id all_layers() const { return layers().known() ? layers().size() : layer_count(); }
  [[nodiscard]] bool all_ran() const { return layers().known() && position_ == layer_count(); }
  ChainStates& states_;
  const bool works_in_place_, returns_state_;  // of the states
  ChainSetup setup_;
  StateTiers tiers_;
  HeldStates held_;
  KeptPass kept_;
  Verification verification_;
  ByHand by_hand_;
  std::function<void(const ChainProgress&)> observer_;

  // The pass.
  Phase phase_ = Phase::idle;
  Owner owner_ = Owner::engine;
  std::uint64_t number_ = 0;  // of passes begun, this one included
  std::optional<ChainPass> pass_;
  Id first_ = 0;                // layer of the part
  Id start_ = 0;                // layer that the pass began with
  bool ran_before_ = false;     // all layers of the part have run forward before
  bool part_open_ = false;      // there is a part to go backward through
  std::set<Id> adopted_;        // states that were saved by hand, and are in a tier under the key they got then
  bool plain_ = false;          // see run_forward_plainly
  Id position_ = 0;             // in forward the layer that is next; in backward the number of layers that are left
  std::size_t disk_reads_ = 0;  // so far
  int planned_again_ = 0;       // how many times, in this part
  bool catching_up_ = false;    // in backward, with the forward of a new plan
  std::optional<double> cost_;  // of the layer that is running, if the caller gave it
  Id result_ = nowhere;         // of the layer that ran forward last, on its way to the caller

  // The pass that is kept.
  bool kept_on_ = false;           // this one is
  bool keeps_more_ = true;         // false: the disk is too small for states that it need not have
  bool folder_is_ours_ = false;    // what the folder has is this chain's, or the caller knows of it
  std::uint64_t fingerprint_ = 0;  // the caller's
  std::optional<KeptPass::Found> resumed_;
  std::uint64_t kept_input_ = 0;  // of a pass that was resumed: the fingerprint of its input
  bool has_known_sizes_ = false;  // the sizes that were set or measured are those of its states
  struct ReadState {
    Id state = nowhere;
    std::uint64_t fingerprint = 0;
  };
  ReadState read_;  // the state that was read last from the folder: forward makes it again when backward is there
};

}  // namespace reprise::internal
