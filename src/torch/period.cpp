#include "torch/period.h"

#include "torch/bytes_of.h"

namespace reprise::internal {

Bytes Period::bytes() const {
  Bytes bytes = recipes->bytes() + seen.bytes() + bytes_of(costs, other, common);
  if (script) bytes += script->bytes();
  if (plan) bytes += bytes_of(plan->actions);
  return bytes;
}

void Period::drop_plan() {
  script.reset();
  plan.reset();
  given = false;
  outgrown = true;
}

}  // namespace reprise::internal
