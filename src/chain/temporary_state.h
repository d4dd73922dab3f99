#pragma once

#include <utility>

#include "reprise/chain/internal/chain_states.h"

namespace reprise::internal {

// Owns a state, which is dropped in the end or when another one replaces it.
class TemporaryState {
 public:
  explicit TemporaryState(ChainStates& states) : states_(states) {}
  TemporaryState(const TemporaryState&) = delete;
  TemporaryState& operator=(const TemporaryState&) = delete;
  ~TemporaryState() { replace(nowhere); }

  void replace(Id slot) {
    const Id before = std::exchange(slot_, slot);
    if (before != nowhere) states_.drop(before);
  }
  [[nodiscard]] Id release() { return std::exchange(slot_, nowhere); }

 private:
  ChainStates& states_;
  Id slot_ = nowhere;
};

}  // namespace reprise::internal
