// How a step is measured, however the process is copied.
#pragma once

#include <functional>

#include "reprise/torch/measurement.h"
#include "torch/api/copy_of_process.h"

namespace reprise::internal {

[[nodiscard]] Measurement measure_in_copy(const std::function<void()>& train, const MakeCopy&);

}  // namespace reprise::internal
