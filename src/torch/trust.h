// Trust: which values need not be compared whenever they are rebuilt for the first time.
//
// The first time that the recipe of a value is used in place of forgotten contents, the two are compared. Where steps
// differ, every trace is new, and so is every recipe in it. But the operators are those of the steps before: values are
// of one *kind* if an operator of the same name made them out of tensors that lie in memory in the same way, and the
// operators before it are alike (recipes.h). A kind that was compared often, in several periods, and never differed, is
// compared now and then from then on. Operators that are not LibTorch's own may do anything: each recipe is compared.
//
// Under the arbiter's lock.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "torch/recipes.h"

namespace reprise::internal {

class Trust {
 public:
  // Whether what this operator makes need not be compared this time.
  [[nodiscard]] bool suffices(const Recipes&, Id op);
  // What it makes was compared, and is the same, in the recording of this number.
  void grow(const Recipes&, Id op, std::uint32_t recording);

 private:
  struct Kind {
    std::uint32_t compared = 0, recordings = 0, last_recording = 0;
    std::uint32_t asked = 0;  // since it is trusted
  };

  std::unordered_map<std::uint64_t, Kind> kinds_;
};

}  // namespace reprise::internal
