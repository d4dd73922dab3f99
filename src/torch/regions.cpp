#include "torch/regions.h"

#include "torch/of_thread.h"

namespace reprise::internal {

Regions& regions() {
  return of_thread<Regions>();
}

}  // namespace reprise::internal
