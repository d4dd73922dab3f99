#include "torch/observations.h"

#include <time.h>

#include <algorithm>

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

namespace {
double microseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}
}  // namespace

double thread_microseconds() {
  return microseconds(CLOCK_THREAD_CPUTIME_ID);
}
double wall_microseconds() {
  return microseconds(CLOCK_MONOTONIC);
}

}  // namespace reprise::internal
