// Checks by fingerprints that layers that are run again make the same states as before.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reprise/chain/internal/chain_states.h"
#include "reprise/trace/verify.h"

namespace reprise::internal {

class Verification {
 public:
  static constexpr Id most_by_default = 1 << 18;  // layers

  void set_when(Verify when) { asked_ = when; }
  // Returns what applies to a chain of these states and this many layers.
  [[nodiscard]] Verify effective(const ChainStates&, Id layers) const;
  // Compares once more what was compared the first time, because another schedule replays other layers.
  void compare_again() { done_ = false; }

  // Begins a pass. `exact`: replays begin with states that have all their bits, and so can be compared.
  void begin(const ChainStates&, Id layers, bool exact);
  [[nodiscard]] bool is_on() const { return on_; }
  // Checks the state in this slot, which a layer has made for the first time or again. Throws ChainError if the state
  // is another one than before.
  void check(Id layer, const ChainStates& states, Id slot, bool again) {
    if (on_) compare(layer, states, slot, again);
  }
  // Ends a pass in which no difference was found.
  void end_pass() { done_ = done_ || on_; }

 private:
  void compare(Id layer, const ChainStates&, Id slot, bool again);

  std::optional<Verify> asked_;
  bool done_ = false;  // what is to be compared the first time was
  bool on_ = false;    // in this pass
  Verify when_ = Verify::never;
  std::vector<std::uint64_t> fingerprints_;  // by layer
  std::vector<bool> known_, compared_;
};

// Returns a fingerprint of the bytes and the shape of an array.
[[nodiscard]] std::uint64_t fingerprint_of(const ArrayView&);
// Returns a fingerprint of the shape and the type of elements of an array.
[[nodiscard]] std::uint64_t fingerprint_of_shape(const ArrayView&);

}  // namespace reprise::internal
