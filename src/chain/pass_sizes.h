// Measures the sizes of the states of a pass, compares them with those that its plan was made for, and plans again if
// anything is larger.
#pragma once

#include <string>

#include "chain/chain_context.h"

namespace reprise::internal {

class PassSizes {
 public:
  explicit PassSizes(ChainContext& context) : context_(context) {}

  // Runs all layers forward from the lent state and sets the bytes and seconds that they take.
  void measure_layers();
  // Returns the sizes of the state that a pass begins with.
  [[nodiscard]] InputSizes input_sizes(Id input, const StateTierSettings&) const;

  // Measures the layers if the pass is planned for a smaller input than this one. Throws ChainError if the input alone
  // is larger than the budget.
  void measure_if_larger(Id input, const StateTierSettings&);
  // Begins a part whose actions were chosen.
  void begin_part();
  // Sets the limit of what is stored to that of the plan, less the gradients that come in and go out of the backward
  // that is next.
  void update_limit();

  // Compare what was made with the plan. If anything is larger, the rest of the pass is measured and planned again, and
  // begins once more from its input. Throw ChainError if no plan fits.

  // Compares the state and the tape that a layer has made. False if both were dropped, because they are larger.
  [[nodiscard]] bool accept(Id layer, const ChainStates::Made&);
  // Compares the bytes that a tier took for a state.
  void accept_in_tier(Id state, StateTier, Bytes);
  // Compares the gradient that backward of this layer is given. False if the gradient is larger.
  [[nodiscard]] bool accept_gradient(Id layer);
  // Compares the gradient that backward of this layer has made.
  void accept_made_gradient(Id layer);

 private:
  void measure_form(ChainForm&, Id input, const StateTierSettings&);
  void plan_again(const std::string& why, ChainForm, bool measure);
  void restore_input();
  [[nodiscard]] PassActions& actions() { return *pass_.actions; }

  ChainContext& context_;
  ChainStates& states_ = context_.states;
  ChainSetup& setup_ = context_.setup;
  StateTiers& tiers_ = context_.tiers;
  StorageAccount& account_ = context_.account;
  ChainPass& pass_ = context_.pass;
  int measured_again_ = 0;  // how many times in this part
};

}  // namespace reprise::internal
