// The follower: matches the operators of a step against recipes that are known. Where they no longer match it looks for
// another pass that began in the same way, and else leaves them: the step diverges, and writes its own from there.
//
// Under the arbiter's lock.
#pragma once

#include <optional>
#include <string>

#include "torch/values/recording.h"

namespace reprise::internal {

// The operator that is about to run is the next one of the recipes that are followed; or of another pass's, which are
// followed from now on. False: of none, and the recording has diverged.
[[nodiscard]] bool follow(Recording&, const OperatorInfo&, c10::ArrayRef<const c10::IValue> inputs);

// The operators no longer match: from here on the recording writes its own recipes, a copy of those it followed up to
// the operator to come; or, with the number of outputs that did match, to the one that runs. The online policy takes
// over.
void diverge(Recording&, const std::string& why, std::optional<std::size_t> outputs = std::nullopt);

}  // namespace reprise::internal
