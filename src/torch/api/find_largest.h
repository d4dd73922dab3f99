// How the largest size is found, however steps are run.
#pragma once

#include <functional>

#include "reprise/torch/largest.h"

namespace reprise::internal {

// `keeps_budget` runs a step of this session for a size, and returns whether it kept the budget.
[[nodiscard]] Largest find_largest(const Session&, const LargestOptions&,
                                   const std::function<bool(std::int64_t size)>& keeps_budget);

}  // namespace reprise::internal
