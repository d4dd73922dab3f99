// Which values are made of which, by the recipes of a cursor. Under the arbiter's lock.
#pragma once

#include <c10/util/FunctionRef.h>

#include <vector>

#include "torch/recipes/recipe_cursor.h"

namespace reprise::internal {

// By value: whether it is among these, or is what one of them is made of, directly or not. What is not recomputable is
// made of nothing.
[[nodiscard]] std::vector<bool> with_origins(const RecipeCursor&, std::vector<Id> values,
                                             c10::function_ref<bool(Id)> recomputable);

// A value and what is made of it, as far as one follows it.
class Descendants {
 public:
  Descendants(const RecipeCursor&, Id value);

  // The operator needs one of them.
  [[nodiscard]] bool reach(Id op) const;
  void add(Id value) { among_[value] = true; }

 private:
  const Recipes& recipes_;
  std::vector<bool> among_;  // by value
};

}  // namespace reprise::internal
