// Executes the actions of a pass with the caller's closures: run, replay, drop, put, get.
//
// The owner of the loop over the layers, the chain or the caller, decides only how many actions are executed before
// control returns.
#pragma once

#include <functional>
#include <optional>

#include "chain/chain_context.h"
#include "chain/pass_keeper.h"
#include "chain/pass_sizes.h"

namespace reprise::internal {

class PassExecutor {
 public:
  PassExecutor(ChainContext& context, PassSizes& sizes, PassKeeper& keeper)
      : context_(context), sizes_(sizes), keeper_(keeper) {}

  // Begins a part whose actions were chosen.
  void begin_part();
  // Runs all layers of the part forward from this state, and turns.
  void run_forward(Id input);
  // Runs layers forward until `done` returns true after one, for an unknown number of layers, and turns.
  void run_forward_until(Id input, const std::function<bool(Id position, Id state)>& done);
  // Runs the next layer forward from the state that the caller has lent. Its cost is the given one if there is one.
  void run_next_forward(std::optional<double> cost);
  // Ends forward and begins backward.
  void turn();
  // Runs backward of all layers that are left in the part, or of the last one of them.
  void run_backward();
  void run_next_backward();
  // Ends the pass.
  void end() noexcept;
  // Says that the observer has changed.
  void observer_changed() { is_plain_ = is_plain_ && !context_.observer; }

 private:
  void execute_until(Id layer);
  void execute_what_follows(Id position);
  void execute(const Action&);
  // Run several layers that are one action: see step_writer.h.
  void run_layers(Id layer, Id more);
  void run_advancing(Id layer, Id more);
  void run_keeping(Id layer, Id more);
  void reverse_layers(Id layer, Id more);
  void run_layer(Id layer);
  void run_layer_plainly(Id layer);
  void reverse_layer(Id layer);
  void drop(Id value);
  void put(Id state, StateTier);
  void get(Id state, StateTier);

  // True if nothing observes, limits, compares, keeps or decides anything, so that closures are called and nothing
  // else.
  [[nodiscard]] bool can_be_plain() const;
  // True if the part is plain, and no observer was set and no state saved since it began.
  [[nodiscard]] bool is_plain() const { return is_plain_ && !held_.has_saved(); }
  [[nodiscard]] bool is_dropped_next(Id value) {
    const Action* next = actions().next();
    return next && *next == Action::drop(value);
  }
  // True if the state after this layer can take the slot of the one before it, which is `input`.
  [[nodiscard]] bool can_take_slot(Id layer, Id input);
  [[nodiscard]] ChainStates::Made call_in_place(Id layer, bool replay, bool with_tape);
  void release_replaced(Id layer, bool replay, Bytes bytes);
  [[nodiscard]] PassActions& actions() { return *pass_.actions; }

  ChainContext& context_;
  PassSizes& sizes_;
  PassKeeper& keeper_;
  ChainStates& states_ = context_.states;
  StateTiers& tiers_ = context_.tiers;
  HeldStates& held_ = context_.held;
  ChainStatistics& statistics_ = context_.account.statistics;
  ChainPass& pass_ = context_.pass;
  const bool is_in_place_ = states_.is_in_place(), is_by_value_ = states_.is_by_value();
  bool is_plain_ = false;       // the part, unless a state was saved
  std::optional<double> cost_;  // of the layer that is running, if the caller gave it
};

}  // namespace reprise::internal
