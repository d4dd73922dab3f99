// Plans that evict and recompute: the caller says what runs and what is evicted, and every list that comes out of it
// is valid.
//
// A Recomputer goes through a trace and writes run, replay, put and get actions. It knows which values are at hand. To
// evict a value is to say that nothing may count on it any more; when something needs it after all, the operators that
// recompute it from what is at hand are replayed first. The drops follow from the list (drops.h).
//
// It never evicts what cannot be recomputed: what came from outside, what an operator made that may not be replayed,
// and what was made from a value that is neither kept nor can be recomputed (its storage was taken over).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/timeline.h"

namespace reprise::internal {

// By value: whether replays can make it again at any time after it was made, if everything else that cannot be made
// again is kept.
[[nodiscard]] std::vector<char> recomputable(const Trace&, const Timeline&);

class Recomputer {
 public:
  Recomputer(const Trace&, const Timeline&);

  // Returns the moment to run next.
  [[nodiscard]] Id next() const { return next_; }
  [[nodiscard]] bool has_run(Id moment) const { return moment < next_; }
  [[nodiscard]] bool at_hand(Id value) const { return at_hand_[value] != 0; }
  [[nodiscard]] bool can_recompute(Id value) const { return recomputable_[value] != 0; }

  // Runs the next moment, after recomputing what it needs and is not at hand.
  void run_next();
  // Runs all moments before this one that have not run.
  void run_until(Id moment);

  // Gets and replays what is needed to have all these values at hand, each operator once and in the order of the trace.
  // What else is made on the way is evicted again at the end. The values have to have been made before.
  void recompute(std::span<const Id> values);
  void recompute(Id value) { recompute(std::span<const Id>(&value, 1)); }

  // Takes effect when the program no longer holds the value; none if it could not be had again.
  void evict(Id value);

  // Puts a copy of a value at hand into a tier, unless it has one. From then on the value is got from there when it is
  // needed and not at hand.
  void put(Id value, Id tier);
  // The copy is not counted on any more; no effect if the value could not be had again without it.
  void evict_copy(Id value);

  // What a moment needs and is not at hand, in no order.
  [[nodiscard]] std::vector<Id> missing(Id moment) const;

  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }
  // Runs what is left and gives the plan with its drops.
  [[nodiscard]] Plan finish(std::vector<Tier> tiers, Bytes budget);

 private:
  void get_and_collect(std::span<const Id> values);
  void make(Id value);

  const Trace& trace_;
  const Timeline& timeline_;
  const std::vector<char> recomputable_;
  std::vector<char> at_hand_;   // by value
  std::vector<char> to_evict_;  // by value: to be evicted when the program no longer holds it
  std::vector<Id> copy_;        // by value: the tier that has a copy, or `nowhere`
  std::vector<Action> actions_;
  Id next_ = 0;

  // Work space of one recompute, kept between calls so that a call costs no more than what it touches.
  std::vector<Id> batch_;             // moments to replay
  std::vector<Id> made_;              // values that were not at hand before
  std::vector<Id> stack_;             // values to be had
  std::vector<std::uint32_t> taken_;  // by moment: the last recompute that replays it
  std::uint32_t recomputes_ = 0;
};

}  // namespace reprise::internal
