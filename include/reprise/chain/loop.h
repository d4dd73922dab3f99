// A loop over the layers of a chain that belongs to the caller.
//
//   ChainLoop loop(chain);
//   for (int k = 0; k < 48; ++k) x = loop.forward(x);
//   for (int k = 48; k-- > 0;) gradient = loop.backward(std::move(gradient));
//
// The chain remembers and replays the same states as if it ran all layers itself. It remembers copies, since the states
// are the caller's.
#pragma once

#include <cstdint>
#include <optional>

#include "reprise/chain/chain.h"

namespace reprise {

// Goes through a chain, which has to outlive it and stay where it is, one layer at a time.
template <class State, class Gradient = State, class Tape = NoTape>
class ChainLoop {
 public:
  explicit ChainLoop(Chain<State, Gradient, Tape>& chain) : chain_(chain) {}

  // Runs the next layer and returns the state after it. The first call begins a new pass of the chain, whatever was
  // before, and so does the first one after backward is over. `input` is the result of the call before, and `cost` the
  // cost of the layer, for the schedules that need it. Throws ChainError if no layer is left, if backward has begun, or
  // if the pass is over because a closure threw or another pass was begun.
  [[nodiscard]] State forward(const State& input, std::optional<double> cost = std::nullopt) {
    static_assert(Clonable<State>,
                  "one layer at a time, the chain remembers copies of the caller's states: specialize "
                  "reprise::StateTraits<State> with `static State clone(const State&)`");
    chain_.typed().lend(input);
    return chain_.typed().take(chain_.run_layer_forward(pass_, cost));
  }

  // Runs backward of the last layer that has not yet run it, and returns the gradient before that layer. Without a call
  // of forward it goes through the pass that Chain::forward has run, or through the states saved by hand. Throws
  // ChainError if forward is not over, or if the pass is.
  Gradient backward(Gradient gradient) {
    chain_.begin_layer_backward(pass_);
    chain_.typed().work_on(gradient);
    chain_.run_layer_backward(pass_);
    return gradient;
  }

 private:
  Chain<State, Gradient, Tape>& chain_;
  std::uint64_t pass_ = 0;  // of the chain; 0: not begun
};

}  // namespace reprise
