#include "torch/values/regions.h"

#include "torch/libtorch/per_thread.h"

namespace reprise::internal {

Regions& regions() {
  return of_thread<Regions>();
}

}  // namespace reprise::internal
