// Online checkpointing is for a chain whose number of layers is known only when it ends, such as a loop that stops when
// it has converged.
//
// A slot remembers one state; the initial state takes one as well, as long as the chain lasts. While forward goes on,
// every state is remembered as long as there are free slots. After that the state just reached takes the slot of a
// remembered one whenever that pays: whenever it makes backward cheaper on the average of two cases, that the chain
// ends here and that it ends one layer later. The remembered state that costs least to lose is evicted for it.
//
// Steps are counted as follows. Forward has made reached() steps when the chain ends, and finish() has forward steps of
// its own, among them one for each layer that tapes. One step of this sum is the price of not knowing the end: forward
// of the last layer had to run without a tape, where revolve_steps, which knows that it is the last, counts its taping
// step. Without that one step, for every number of layers up to 10000 and for any number of slots from 3,
//
//     reached() - 1 + forward_steps(finish()) <= 1.2 * revolve_steps(reached(), slots)
//
// with equality for 5 layers and 3 slots, where no rule does better. The ratio is below 1.05 from a thousand layers on.
// With 2 slots it is at most 1.375, with 1 slot 4/3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reprise/plan/chain_steps.h"

namespace reprise::internal {

class OnlineChain {
 public:
  // Throws BadOption for less than one slot.
  explicit OnlineChain(std::int32_t slots);

  struct Decision {
    bool store = false;                   // remember the state just reached
    std::optional<std::int32_t> discard;  // the state that is evicted for it, first
    bool operator==(const Decision&) const = default;
  };

  // Records that forward of the next layer was made, so that the state after it is number reached(), and returns what
  // to do with states now. The time is constant, but proportional to the slots where a state is evicted.
  Decision advance();

  // Returns the number of layers that forward has gone through.
  [[nodiscard]] std::int32_t reached() const { return reached_; }
  // Returns the states that are remembered now, ascending. The first one is 0. Valid until the next advance().
  [[nodiscard]] std::span<const std::int32_t> remembered() const { return remembered_; }
  // Return the steps of backward of layers reached()..1, if the chain ends here, as by reverse_from.
  [[nodiscard]] ChainSteps finish() const;
  [[nodiscard]] std::unique_ptr<ChainStepSource> finish_source() const;

 private:
  // The fewest forward steps for a stretch of layers, from a remembered state to the next or to the end, and the slots
  // that it has, the one of that state included.
  class Reversal {
   public:
    Reversal(std::int64_t layers, std::int64_t slots);
    void grow();  // by one layer
    [[nodiscard]] std::int64_t steps() const { return steps_; }

   private:
    void sweep_once_more();

    std::int64_t layers_, slots_;
    std::int64_t sweeps_ = 0;  // how often a layer runs, at most, before it is taped
    std::int64_t reach_ = 1;   // the most layers for that many sweeps
    std::int64_t steps_;
  };

  // A remembered state, by its position, and how many more forward steps there are without it.
  struct Victim {
    std::size_t position;
    std::int64_t loss;
  };

  void remembered_changed();
  [[nodiscard]] std::optional<Victim> least_missed() const;

  std::int32_t slots_;
  std::int32_t reached_ = 0;
  std::vector<std::int32_t> remembered_ = {0};

  // From when all slots are taken. The last remembered state is a case apart, because the stretch behind it grows.
  std::optional<Victim> victim_;  // of all others but state 0; none: there are no others
  Reversal last_{0, 2};           // behind the last remembered state, if there were a second slot for it
  Reversal last_two_{0, 2};       // the same without that state, from the one before it
  std::int64_t before_last_ = 0;  // steps of the stretch that ends in the last remembered state
};

}  // namespace reprise::internal
