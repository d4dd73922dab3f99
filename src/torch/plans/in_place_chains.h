// Chains in place: operators of a pass that are replayed together, because each writes into what the one before it
// has made, and nobody else needs that. To the trace they are one operator, the last of them.
#pragma once

#include <vector>

#include "torch/plans/recorded_pass.h"

namespace reprise::internal {

class InPlaceChains {
 public:
  explicit InPlaceChains(const RecordedPass&);

  // The last operator of the chain that it is in; itself, if it is in none.
  [[nodiscard]] Id last(Id op) const { return last_[op]; }
  // Whether another one of its chain comes after it: what it makes is no value of the trace.
  [[nodiscard]] bool goes_on(Id op) const { return next_[op] != no_operator; }
  // The one that writes into what it has made. It goes on.
  [[nodiscard]] Id next(Id op) const { return next_[op]; }

 private:
  std::vector<Id> last_, next_;  // by operator
};

}  // namespace reprise::internal
