// How much a pass that is kept has on disk at most: found by going through its actions, before any of them is executed.
#pragma once

#include <functional>
#include <set>

#include "chain/pass.h"

namespace reprise::internal {

// What is known when a pass, or a part of one, begins. States are those of the part, which begins with number 0.
struct KeptTerms {
  std::function<double(Id layer)> forward_cost;
  std::function<Bytes(Id state)> state;     // of its file
  std::function<Bytes(Id state)> gradient;  // likewise of the gradient with respect to it; 0 if it is not kept
  bool keeps_remembered = true;             // false: only what the schedule puts on disk
  std::set<Id> there;                       // states that have a file already
  Bytes before = 0;                         // of all files that are there
  Bytes at_turn = 0;                        // of those that come when forward is over
};

// Returns the most bytes of files that the pass, which has not begun, has at a time.
[[nodiscard]] Bytes most_kept(ChainPass, KeptTerms);

}  // namespace reprise::internal
