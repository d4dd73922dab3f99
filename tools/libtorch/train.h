// `reprise train`, with LibTorch.
#pragma once

#include "train_options.h"

namespace reprise::tools {

// Returns the exit code. Throws UsageError, and what the library throws.
[[nodiscard]] int train(const TrainOptions&);

}  // namespace reprise::tools
