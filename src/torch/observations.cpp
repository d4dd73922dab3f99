#include "torch/observations.h"

#include <algorithm>

#include "torch/bytes_of.h"

namespace reprise::internal {

Observations Observations::before(Id moment) const {
  Observations copy;
  const auto count = static_cast<std::size_t>(moment);
  copy.moments.assign(moments.begin(), moments.begin() + moment);
  copy.needs.assign(needs.begin(), needs.begin() + static_cast<std::ptrdiff_t>(std::min(count, needs.size())));
  copy.event_names.assign(event_names.begin(),
                          event_names.begin() + static_cast<std::ptrdiff_t>(std::min(count, event_names.size())));
  copy.moment_of = moment_of;
  std::erase_if(copy.moment_of, [&](Id at) { return at >= moment; });
  copy.released = released;
  for (Id& at : copy.released) {
    if (at >= moment - 1) at = -1;
  }
  copy.forms = forms;
  return copy;
}

void Observations::shrink() {
  const auto shrink = [](auto&... lists) { (lists.shrink_to_fit(), ...); };
  shrink(moments, needs, event_names, moment_of, released, forms, watched);
}

Bytes Observations::bytes() const {
  constexpr Bytes behind_needs = 32;  // a small list
  return bytes_of(moments, needs, event_names, moment_of, released, forms, watched) +
         static_cast<Bytes>(needs.size()) * behind_needs;
}

}  // namespace reprise::internal
