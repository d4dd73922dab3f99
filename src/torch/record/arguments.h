// The arguments of an operator that is about to run: written down as a part of its recipe.
#pragma once

#include "torch/values/recording.h"

namespace reprise::internal {

// Returns whether it is a part of the recipe as it is: no tensor, or a wrapped number.
[[nodiscard]] bool is_constant(const c10::IValue&);
[[nodiscard]] inline bool is_constant(const at::Tensor& tensor) {
  return !tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// Returns what the operator does to an argument's storage.
[[nodiscard]] Access access_of(const OperatorInfo&, bool training, int argument, const at::Tensor&);

// Adds the arguments to the recipes that the recording writes; `recipe` learns what keeps it from being replayed.
void write_arguments(Recording&, Recipe& recipe, c10::ArrayRef<const c10::IValue> inputs);

}  // namespace reprise::internal
