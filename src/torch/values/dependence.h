// Which values are made of which, by the recipes of a course. Under the arbiter's lock.
#pragma once

#include <c10/util/FunctionRef.h>

#include <vector>

#include "torch/recipes/course.h"

namespace reprise::internal {

// By value: whether it is among these, or is what one of them is made of, directly or not. What is not rebuildable is
// made of nothing.
[[nodiscard]] std::vector<bool> with_origins(const Course&, std::vector<Id> values,
                                             c10::function_ref<bool(Id)> rebuildable);

// A value and what is made of it, as far as one follows it.
class Descendants {
 public:
  Descendants(const Course&, Id value);

  // The operator needs one of them.
  [[nodiscard]] bool reach(Id op) const;
  void add(Id value) { among_[value] = true; }

 private:
  const Recipes& recipes_;
  std::vector<bool> among_;  // by value
};

}  // namespace reprise::internal
