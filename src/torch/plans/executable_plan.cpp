#include "torch/plans/executable_plan.h"

#include <algorithm>

#include "torch/libtorch/bytes_of.h"

namespace reprise::internal {

std::span<const ExecutablePlan::Step> ExecutablePlan::steps_after(Id moment) const {
  return {steps.data() + after[moment], steps.data() + before[moment + 1]};
}
std::span<const ExecutablePlan::Step> ExecutablePlan::steps_before(Id moment) const {
  return {steps.data() + before[moment], steps.data() + after[moment]};
}

Bytes ExecutablePlan::bytes() const {
  constexpr Bytes behind_replay = 64;  // its two lists
  return bytes_of(steps, after, before, events, recipes, replays, owned, last_drop, packings, most_other) +
         static_cast<Bytes>(replays.size()) * behind_replay;
}

Bytes ExecutablePlan::spare(const std::vector<OtherBytes>& seen) const {
  Bytes least = budget;
  for (std::size_t m = 0; m < std::min(seen.size(), most_other.size()); ++m) {
    least = std::min({least, most_other[m].between - seen[m].between, most_other[m].within - seen[m].within});
  }
  return least;
}

}  // namespace reprise::internal
