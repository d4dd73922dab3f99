// A recipe, ready to be run: a copy, because the recorder of another thread may add recipes meanwhile.
#pragma once

#include <ATen/core/stack.h>

#include <optional>

#include "torch/memory/arbiter.h"
#include "torch/recipes/settings.h"
#include "torch/values/recording.h"

namespace reprise::internal {

struct ReplayCall {
  struct Input {
    Id value = no_value;
    bool defined = false;
    View view;
  };
  struct Argument {
    internal::Argument::Kind kind = internal::Argument::Kind::constant;
    c10::IValue constant;
    c10::SmallVector<Input, 1> inputs;
  };

  const OperatorInfo* info = nullptr;
  bool grad_mode = true;
  std::optional<at::ScalarType> default_type;  // if the results may depend on it
  Settings settings;
  c10::SmallVector<Argument, 8> arguments;
  c10::SmallVector<Write, 2> writes;
  draws::Tape tape;

  // Copies the recipe of an operator.
  ReplayCall(const Arbiter&, const Recording&, Id op);

  // Runs the operator as it ran then: below autograd, with the default type and the random numbers of that time, not
  // recorded. Throws draws::OffTheTape, and what the operator throws.
  void run(torch::jit::Stack&) const;
};

}  // namespace reprise::internal
