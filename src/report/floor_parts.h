// What sets the floor, by part, and in one sentence.
#pragma once

#include <string>

#include "reprise/export.h"
#include "reprise/report/inspection.h"

namespace reprise::internal {

// Returns the parts, whose sum is the floor.
[[nodiscard]] FloorParts parts_of_floor(const Trace&, const Blocker& floor);

// Returns "moment 12 'SoftmaxBackward0', which needs 8.00 MiB of values and 16.0 MiB of workspace, beside 24.0 MiB of
// other bytes".
[[nodiscard]] REPRISE_EXPORT std::string describe_floor(const Trace&, const Blocker& floor);

}  // namespace reprise::internal
