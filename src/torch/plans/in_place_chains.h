// Chains in place: operators of a pass that are replayed together, because each writes into what the one before it
// has made, and nothing else needs that. To the trace they are one operator, the last of them.
#pragma once

#include <vector>

#include "torch/plans/recorded_pass.h"

namespace reprise::internal {

class InPlaceChains {
 public:
  explicit InPlaceChains(const RecordedPass&);

  // Returns the last operator of the chain that this one is in; this one, if it is in none.
  [[nodiscard]] Id last(Id op) const { return last_[op]; }
  // Returns whether another one of its chain comes after it: what it makes is no value of the trace.
  [[nodiscard]] bool goes_on(Id op) const { return next_[op] != no_operator; }
  // Returns the one that writes into what this one has made. Requires goes_on().
  [[nodiscard]] Id next(Id op) const { return next_[op]; }

 private:
  std::vector<Id> last_, next_;  // by operator
};

}  // namespace reprise::internal
