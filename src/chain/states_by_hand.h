// States that the caller saves and asks for, besides those of the schedule. A pass that goes on is not disturbed.
#pragma once

#include <optional>

#include "chain/chain_context.h"
#include "chain/pass_keeper.h"
#include "reprise/chain/any_chain.h"

namespace reprise::internal {

// Layers are those of the chain; a state that is returned is in a slot that the caller has from then on.
class StatesByHand {
 public:
  StatesByHand(ChainContext& context, const PassKeeper& keeper) : context_(context), keeper_(keeper) {}

  void set_options(ByHand options) { options_ = options; }
  [[nodiscard]] const ByHand& options() const { return options_; }

  // Saves this state of the chain, as it is or in a tier. Throws ChainError if that is one too many, or if there is no
  // tier for it. The slot is taken in any case.
  void save(Id state, Id slot);
  // True if the state after this layer is remembered, by the schedule or by hand.
  [[nodiscard]] bool is_remembered(Id layer) const;
  // Returns a copy of that state. Throws ChainError if it is not remembered.
  [[nodiscard]] Id copy(Id layer);
  // Returns that state, recomputed from the nearest one that is remembered. Throws ChainError if there is none.
  [[nodiscard]] Id recompute(Id layer);
  // Begins backward from the states that are saved.
  void begin_backward();
  // Throws ChainError unless the chain has this layer.
  void require_layer(Id layer) const;

 private:
  // Returns the tier of states that are saved now. Empty: they are saved as they are.
  [[nodiscard]] std::optional<StateTier> tier() const;
  void bring_all_to(std::optional<StateTier>);
  // Returns a state of the part that a tier has and keeps, put there by the schedule or by hand.
  [[nodiscard]] std::optional<Id> from_tiers(Id state);
  // Returns the nearest state of the part, up to this one, that is remembered. If the pass is kept, it may be one from
  // before the part, with a number below zero.
  [[nodiscard]] std::optional<Id> nearest_remembered(Id state) const;

  ChainContext& context_;
  const PassKeeper& keeper_;
  ByHand options_;
};

}  // namespace reprise::internal
