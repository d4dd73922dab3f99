#include "torch/values/dependence.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

std::vector<bool> with_origins(const Course& course, std::vector<Id> values, c10::function_ref<bool(Id)> rebuildable) {
  std::vector<bool> among(course.values(), false);
  for (const Id value : values) among[value] = true;
  std::vector<Id> open = std::move(values);
  while (!open.empty()) {
    const Id value = open.back();
    open.pop_back();
    if (!rebuildable(value)) continue;
    for (const Reference& reference : course.recipes().references_of(course.info(value).maker)) {
      if (reference.value == no_value || among[reference.value]) continue;
      among[reference.value] = true;
      open.push_back(reference.value);
    }
  }
  return among;
}

Descendants::Descendants(const Course& course, Id value) : recipes_(course.recipes()), among_(course.values(), false) {
  add(value);
}

bool Descendants::reach(Id op) const {
  const auto references = recipes_.references_of(op);
  return std::any_of(references.begin(), references.end(), [this](const Reference& reference) {
    return reference.value != no_value && among_[reference.value];
  });
}

}  // namespace reprise::internal
