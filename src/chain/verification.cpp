#include "chain/verification.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "reprise/chain/statistics.h"

namespace reprise::internal {

std::uint64_t fingerprint_of_shape(const ArrayView& array) {
  const Shape& shape = array.shape();
  return XXH3_64bits_withSeed(shape.data(), shape.size() * sizeof(shape[0]),
                              static_cast<XXH64_hash_t>(array.element()));
}

std::uint64_t fingerprint_of(const ArrayView& array) {
  return XXH3_64bits_withSeed(array.data().data(), array.bytes(), fingerprint_of_shape(array));
}

Verify Verification::effective(const ChainStates& states, Id layers) const {
  if (!states.is_codable()) return Verify::never;
  return asked_.value_or(states.is_comparable() && layers <= most_by_default ? Verify::first_time : Verify::never);
}

void Verification::begin(const ChainStates& states, Id layers, bool exact) {
  when_ = effective(states, layers);
  on_ = exact && (when_ == Verify::always || (when_ == Verify::first_time && !done_));
  known_.assign(on_ ? static_cast<std::size_t>(layers) : 0, false);
  compared_.assign(known_.size(), false);
  fingerprints_.resize(known_.size());
  if (!on_) fingerprints_ = {};
}

void Verification::compare(Id layer, const ChainStates& states, Id slot, bool again) {
  const auto at = static_cast<std::size_t>(layer);
  if (at >= known_.size()) {  // of an unknown number of layers
    if (layer >= most_by_default && when_ == Verify::first_time) return;
    known_.resize(at + 1, false);
    compared_.resize(at + 1, false);
    fingerprints_.resize(at + 1);
  }
  if (again && compared_[at] && when_ == Verify::first_time) return;
  std::uint64_t fingerprint = 0;
  states.encode(slot, [&](const ArrayView& array) { fingerprint = fingerprint_of(array); });
  if (again && known_[at]) {
    compared_[at] = true;
    if (fingerprint == fingerprints_[at]) return;
    throw ChainError(
        fmt::format("[chain] layer {} made another state when it was run again: forward has to give the same result "
                    "every time. Has it drawn random numbers, used something that changes, or is there a race? "
                    "verify(Verify::never) compares nothing",
                    layer));
  }
  known_[at] = true;
  fingerprints_[at] = fingerprint;
}

}  // namespace reprise::internal
