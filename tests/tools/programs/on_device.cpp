// What makes stranger.cpp train on the simulated accelerator.
#include <cstdlib>

#include "accelerator/accelerator.h"

void choose_device();
void choose_device() {
  namespace accelerator = reprise::testing::accelerator;
  accelerator::use(1);
  accelerator::make_default();
  // Kernels run on the host: nothing that they need may be gone before they end.
  std::atexit(accelerator::synchronize);
}
