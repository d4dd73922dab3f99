#include "torch/script.h"

#include "torch/bytes_of.h"

namespace reprise::internal {

std::span<const Script::Step> Script::steps_after(Id moment) const {
  return {steps.data() + after[moment], steps.data() + before[moment + 1]};
}
std::span<const Script::Step> Script::steps_before(Id moment) const {
  return {steps.data() + before[moment], steps.data() + after[moment]};
}

Bytes Script::bytes() const {
  constexpr Bytes behind_replay = 64;  // its two lists
  return bytes_of(steps, after, before, events, recipes, replays, owned, last_drop, forms, other, most_other) +
         static_cast<Bytes>(replays.size()) * behind_replay;
}

}  // namespace reprise::internal
