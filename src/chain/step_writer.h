// From the steps of a schedule to the actions of a plan for the trace that a chain is.
#pragma once

#include <optional>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/plan/chain_steps.h"
#include "reprise/trace/plan.h"
#include "trace/sparse_table.h"

namespace reprise::internal {

// Writes actions step by step, so that a chain can execute the first ones before the last ones are known. Of the form
// it uses only what is known from the start (tapes, places); the number of layers is told when it is known.
class StepWriter {
 public:
  StepWriter(bool tapes, std::optional<Id> packed, std::optional<Id> disk) : tapes_(tapes), places_{packed, disk} {
    states_.set(0, {.resident = true});
  }

  // There are no more layers than these; the state that the last one makes is nobody's.
  void layers(Id count) { layers_ = count; }
  // Forward is over, and the number of layers was told after the last one had run.
  void end_forward() {
    if (*layers_ > 0) drop(*layers_);
  }

  // Steps in words: see chain_steps.h. `goes_on`: of tape, whether the state it makes is wanted.
  void advance(Id at);
  void tape(Id at, bool goes_on);
  void backward(Id at);
  void store(Id at, Id level);
  void load(Id at, Id level);
  void discard(Id at, Id level);
  void write(const ChainSteps&);
  // Writes one step, given the one after it, if there is one.
  void write(const ChainStep&, const ChainStep* following);

  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }
  [[nodiscard]] std::vector<Action> take_actions() { return std::move(actions_); }
  // Forgets the actions so far, which somebody has executed.
  void clear_actions() { actions_.clear(); }

 private:
  // What is known about a state.
  struct Stay {
    bool resident = false;
    bool stored = false;              // in plain memory, so that it stays resident
    bool copied[2] = {false, false};  // by level: put there and not read since
    bool operator==(const Stay&) const = default;
  };

  [[nodiscard]] Id value(Id state) const { return tapes_ ? 2 * state : state; }
  [[nodiscard]] Id tape_value(Id layer) const { return 2 * layer + 1; }
  template <class Change>
  void change(Id state, const Change& change) {
    Stay stay = states_[state];
    change(stay);
    states_.set(state, stay);
  }
  void forward(Id at);
  void drop(Id state);
  void drop_unless_stored(Id state);

  const bool tapes_;
  const std::optional<Id> places_[2];  // by level: the tier; none for plain memory
  std::optional<Id> layers_;
  Id has_run_ = 0;  // layers
  SparseTable<Stay> states_;
  std::vector<Action> actions_;
};

}  // namespace reprise::internal
