// From places where forward is cut to the layers of a chain.
#pragma once

#include <optional>
#include <vector>

#include "plan/chains/chain_shape.h"

namespace reprise::internal {

// Forward is cut before this moment; the value crosses, and beside it only what is kept anyway.
struct Cut {
  Id before = 0;
  std::optional<Id> state;
};

// A moment of backward that needs a value of a layer (counted from 1) where another one is due.
struct Misfit {
  Id moment = 0, value = 0, layer = 0, due = 0;
};

struct ShapedChain {
  ChainShape chain;
  // The first one, if there is any; such values are kept. What the last layer makes is free to be needed later.
  std::optional<Misfit> misfit;
};

// Gives backward to the layers between the cuts. Cuts are left out whose state does not outlive the next layer, and
// those next to a layer that backward passes over.
[[nodiscard]] ShapedChain shape_chain(const Trace&, const Timeline&, Id first_backward, std::vector<Cut> cuts);

}  // namespace reprise::internal
