#include "torch/values/regions.h"

#include "torch/libtorch/of_thread.h"

namespace reprise::internal {

Regions& regions() {
  return of_thread<Regions>();
}

}  // namespace reprise::internal
