// The follower: matches the operators of a step against recipes that are known. Where they no longer match it looks for
// another pass that began in the same way, and else leaves them: the step diverges, and writes its own from there.
#pragma once

#include <optional>
#include <string>

#include "torch/memory/arbiter.h"
#include "torch/values/recording.h"

namespace reprise::internal {

// Returns true if the operator that is about to run is the next one of the recipes that are followed, or of those of
// another pass, which are followed from now on. False if it is of none, and the recording has diverged.
[[nodiscard]] bool follow(const Arbiter&, Recording&, const OperatorInfo&, c10::ArrayRef<const c10::IValue> inputs);

// Leaves the recipes, because the operators no longer match: from here on the recording writes its own, a copy of those
// it followed up to the operator to come; or, with the number of outputs that did match, to the one that runs. The
// online policy takes over. Takes the lock.
void diverge(Recording&, const std::string& why, std::optional<std::size_t> outputs = std::nullopt);

}  // namespace reprise::internal
