// The simulated accelerator for programs in Python, which load this library with ctypes.
#include <mutex>

#include "accelerator/accelerator.h"
#include "accelerator/device_generator.h"

namespace accelerator = reprise::testing::accelerator;

extern "C" {

void accelerator_use(int devices, bool draws_on_cpu, bool exact_statistics) {
  accelerator::use(devices, {draws_on_cpu, exact_statistics});
}

void accelerator_seed(std::uint64_t seed) {
  at::Generator generator = accelerator::default_generator(0);
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(seed);
}

std::int64_t accelerator_live_peak() {
  return accelerator::memory().live_peak;
}
}
