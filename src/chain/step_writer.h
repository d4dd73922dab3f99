// From the steps of a schedule to the actions of a plan for the trace that a chain is.
#pragma once

#include <optional>
#include <vector>

#include "reprise/chain/form.h"
#include "reprise/plan/chain_steps.h"
#include "reprise/trace/plan.h"

namespace reprise::internal {

// Writes actions step by step, so that a chain can execute the first ones before the last ones are known. Of the form
// it uses only what is known from the start (tapes, places); the number of layers is told when it is known.
class StepWriter {
 public:
  StepWriter(bool tapes, std::optional<Id> packed, std::optional<Id> disk) : tapes_(tapes), places_{packed, disk} {}

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

  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }
  [[nodiscard]] std::vector<Action> take_actions() { return std::move(actions_); }

 private:
  [[nodiscard]] Id value(Id state) const { return tapes_ ? 2 * state : state; }
  [[nodiscard]] Id tape_value(Id layer) const { return 2 * layer + 1; }
  void grow(Id state);
  void forward(Id at);
  void drop(Id state);
  void drop_unless_stored(Id state);

  const bool tapes_;
  const std::optional<Id> places_[2];  // by level: the tier; none for plain memory
  std::optional<Id> layers_;
  Id has_run_ = 0;               // layers
  std::vector<char> resident_;   // by state
  std::vector<char> stored_;     // by state: in plain memory, so that it stays resident
  std::vector<char> copied_[2];  // by level and state: put there and not read since
  std::vector<Action> actions_;
};

}  // namespace reprise::internal
