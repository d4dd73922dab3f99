#include "torch/libtorch/clock.h"

#include <time.h>

namespace reprise::internal {
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
