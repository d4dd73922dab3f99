// The steps of a schedule for a chain of layers.
//
// A chain has layers 1..n and states 0..n: layer k makes state k from state k-1, and backward goes through the layers
// from n to 1. Backward of layer k needs its input state and its *tape*, which is everything else that forward of layer
// k made and its backward needs. Schedules know nothing of traces or closures; their executors translate the steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reprise/export.h"

namespace reprise {

struct ChainStep {
  enum class Kind : std::uint8_t {
    advance,   // forward of layer `at`, from the state before it; its tape is not remembered
    tape,      // forward of layer `at`, and its tape is remembered until its backward
    backward,  // backward of layer `at`, whose tape is there
    store,     // remembers state `at`, the one that the last step made or loaded, in `level`
    load,      // goes on from state `at`, which is remembered in `level`
    discard,   // evicts state `at` in `level`
  };
  Kind kind = Kind::advance;
  std::int32_t at = 0;
  std::int32_t level = 0;  // of store, load and discard: 0 is memory, 1 is the next slower place
  bool operator==(const ChainStep&) const = default;
};

using ChainSteps = std::vector<ChainStep>;

// Gives the steps of a schedule one after the other, so that they need not be in memory at once.
class REPRISE_EXPORT ChainStepSource {
 public:
  virtual ~ChainStepSource() = default;
  // Returns the next step. Empty after the last one.
  [[nodiscard]] virtual std::optional<ChainStep> next() = 0;
  // Writes the next steps, as many as there is room for, and returns their number: fewer only if there are no more. A
  // source need not have its own; it is quicker than one step at a time.
  [[nodiscard]] virtual std::size_t fill(std::span<ChainStep> room);
};
// Returns all steps that are left.
[[nodiscard]] REPRISE_EXPORT ChainSteps all_steps(ChainStepSource&);

// Returns the number of forward steps, those that tape included.
[[nodiscard]] REPRISE_EXPORT std::size_t forward_steps(const ChainSteps&);

}  // namespace reprise
