// Whether layers that are run again make the same states as before, told by fingerprints.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reprise/chain/chain_states.h"
#include "reprise/trace/verify.h"

namespace reprise::internal {

class Verification {
 public:
  static constexpr Id most_by_default = 1 << 18;  // layers

  void set(Verify when) { asked_ = when; }
  // Returns what applies to a chain of these states and this many layers.
  [[nodiscard]] Verify when(const ChainStates&, Id layers) const;
  // What was compared has to be compared once more: another schedule replays other layers.
  void start_again() { done_ = false; }

  // Begins a pass. `exact`: replays begin with states that have all their bits.
  void begin(const ChainStates&, Id layers, bool exact);
  [[nodiscard]] bool is_on() const { return on_; }
  // Looks at the state in this slot, which a layer has made for the first time or again. Throws ChainError if it is
  // another one than before.
  void made(Id layer, const ChainStates& states, Id slot, bool again) {
    if (on_) look(layer, states, slot, again);
  }
  // A pass is over, and everything in it was right.
  void pass_over() { done_ = done_ || on_; }

 private:
  void look(Id layer, const ChainStates&, Id slot, bool again);

  std::optional<Verify> asked_;
  bool done_ = false;  // all that is to be compared the first time
  bool on_ = false;    // in this pass
  Verify when_ = Verify::never;
  std::vector<std::uint64_t> fingerprints_;  // by layer
  std::vector<bool> known_, compared_;
};

// Returns a fingerprint of the bytes and the shape of an array.
[[nodiscard]] std::uint64_t fingerprint_of(const ArrayView&);
// Returns a fingerprint of its shape and its type of elements alone.
[[nodiscard]] std::uint64_t fingerprint_of_shape(const ArrayView&);

}  // namespace reprise::internal
