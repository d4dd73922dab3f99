// How much a pass that is kept has on disk at most: found by going through its actions, before any of them is executed.
#pragma once

#include <functional>
#include <set>

#include "chain/pass_actions.h"

namespace reprise::internal {

// The sizes that are known when a pass, or a part of one, begins. States are numbered from the first of the part.
struct KeptSizes {
  std::function<double(Id layer)> forward_cost;
  std::function<Bytes(Id state)> state;     // of the file of a state
  std::function<Bytes(Id state)> gradient;  // of the file of the gradient with respect to it; 0 if that is not kept
  bool keeps_remembered = true;             // false: only what the schedule puts on disk
  std::set<Id> there;                       // states that have a file already
  Bytes before = 0;                         // of all files that are there
  Bytes at_turn = 0;                        // of those that come when forward is over
};

// Returns the most bytes of files that a pass that has not begun will have at a time.
[[nodiscard]] Bytes most_kept_bytes(PassActions, KeptSizes);

}  // namespace reprise::internal
