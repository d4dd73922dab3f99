// Writes the steps of a schedule as the actions of a plan for the trace of a chain.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/plan/chain_steps.h"
#include "reprise/trace/plan.h"

namespace reprise::internal {

// The tiers of a chain, by their position in the plan: coded states in memory, and the disk.
struct ChainTiers {
  std::optional<Id> packed, disk;
};

// Writes actions step by step, so that a chain can execute the first ones before the last ones are known. Of the form
// only what is known from the start (tapes, tiers) is used; the number of layers is set when it is known. Steps about
// layers and states that are not there are a BadOption; all other rules are ChainRules' or the interpreter's to check.
class StepWriter {
 public:
  // `is_incremental`: the first actions are executed before the last ones are written, so that the last get of a copy
  // has to be known when it is written: see last_gets().
  StepWriter(bool tapes, ChainTiers tiers, bool is_incremental)
      : tapes_(tapes),
        is_incremental_(is_incremental),
        marks_last_(is_incremental && (tiers.packed || tiers.disk)),
        tiers_{tiers.packed, tiers.disk},
        states_(1) {
    states_[0].resident = true;
  }

  // From now on, a run or replay stands for several layers where one comes right after the other. Its `tier`, which has
  // no other use there, says how many more there are, and what happens to the state between two of them:
  //   forward, above zero: each layer has the state that the one before made, which is dropped at once
  //   forward, below zero: the same, and no state is dropped
  //   backward: the state of each layer but the last is dropped when its backward has run
  // For chains without tapes.
  void set_joining(bool on) { joins_ = on && !tapes_; }

  // Sets the number of layers. The state that the last one makes is not stored.
  void set_layers(Id count) {
    layers_ = count;
    states_.resize(static_cast<std::size_t>(count) + 1);
  }
  // Ends forward where the number of layers was set after the last one had run.
  void end_forward();

  // Write one step each: see chain_steps.h. `goes_on`: the state that a tape step makes is used afterwards. `last`: the
  // copy that a load step reads is not read again.
  void advance(Id at);
  void tape(Id at, bool goes_on);
  void backward(Id at);
  void store(Id at, Id level);
  void load(Id at, Id level, bool last);
  void discard(Id at, Id level);
  // Writes the first steps of these, given some that follow them: two, unless there are no more.
  void write(std::span<const ChainStep> steps, std::size_t count);

  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }
  [[nodiscard]] std::vector<Action> take_actions() { return std::move(actions_); }
  // Returns the positions of the gets after which the copy need not stay, ascending.
  [[nodiscard]] std::span<const std::size_t> last_gets() const { return last_gets_; }
  // Removes the first actions, which were executed.
  void erase_actions(std::size_t count);

 private:
  // What is known about a state, in one byte: there is one for each layer.
  struct Stay {
    bool resident : 1 = false;
    bool stored : 1 = false;  // in plain memory, so that it stays resident
    bool packed : 1 = false;  // put into the tier and, as far as is known, not read for the last time
    bool on_disk : 1 = false;
    bool operator==(const Stay&) const = default;
  };

  [[nodiscard]] Id value(Id state) const { return tapes_ ? 2 * state : state; }
  [[nodiscard]] Id tape_value(Id layer) const { return 2 * layer + 1; }
  [[nodiscard]] Stay& stay(Id state) {
    if (static_cast<std::size_t>(state) >= states_.size()) fail_state(state);
    return states_[static_cast<std::size_t>(state)];
  }
  [[nodiscard]] std::optional<Id> tier_of(Id level) const;
  [[nodiscard]] bool has_copy(const Stay& stay, Id level) const { return level == 0 ? stay.packed : stay.on_disk; }
  void set_copy(Stay& stay, Id level, bool there);
  void forward(Id at);
  // Return whether a layer was joined to the one before it, and how many steps were.
  [[nodiscard]] bool join_forward(Id layer, bool again);
  [[nodiscard]] bool join_backward(Id moment, Id layer);
  [[nodiscard]] std::size_t join_advances(Action& layers, Id at, std::span<const ChainStep>);
  [[nodiscard]] std::size_t join_kept(Id at, std::span<const ChainStep>, std::size_t count);
  [[nodiscard]] std::size_t join_reversed(Id at, std::span<const ChainStep>);
  void drop(Id state, Stay&);
  void drop_unless_stored(Id state);
  [[noreturn]] void fail_state(Id state) const;

  const bool tapes_;
  const bool is_incremental_;
  const bool marks_last_;             // which get is the last one; without tiers there are none
  const std::optional<Id> tiers_[2];  // by level: the tier; none for plain memory
  Id layers_ = -1;                    // below zero: unknown
  Id has_run_ = 0;                    // layers
  std::vector<Stay> states_;          // all there are, or, while their number is unknown, those that were made
  std::vector<Action> actions_;
  std::vector<std::size_t> last_gets_;

  bool joins_ = false;
};

}  // namespace reprise::internal
