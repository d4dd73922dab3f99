// How a step is measured, whoever makes the copy of the process.
#pragma once

#include <sys/types.h>

#include <functional>

#include "reprise/torch/measurement.h"

namespace reprise::internal {

// `copy` is `fork`, with whatever another language wants to be done around it.
[[nodiscard]] Measurement measure_in_copy(const std::function<void()>& train, const std::function<pid_t()>& copy);

}  // namespace reprise::internal
