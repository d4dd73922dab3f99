#include "torch/values/dependence.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

std::vector<bool> with_origins(const RecipeCursor& cursor, std::vector<Id> values,
                               c10::function_ref<bool(Id)> recomputable) {
  std::vector<bool> among(cursor.values(), false);
  for (const Id value : values) among[value] = true;
  std::vector<Id> open = std::move(values);
  while (!open.empty()) {
    const Id value = open.back();
    open.pop_back();
    if (!recomputable(value)) continue;
    for (const Reference& reference : cursor.recipes().references_of(cursor.info(value).maker)) {
      if (reference.value == no_value || among[reference.value]) continue;
      among[reference.value] = true;
      open.push_back(reference.value);
    }
  }
  return among;
}

Descendants::Descendants(const RecipeCursor& cursor, Id value)
    : recipes_(cursor.recipes()), among_(cursor.values(), false) {
  add(value);
}

bool Descendants::reach(Id op) const {
  const auto references = recipes_.references_of(op);
  return std::any_of(references.begin(), references.end(), [this](const Reference& reference) {
    return reference.value != no_value && among_[reference.value];
  });
}

}  // namespace reprise::internal
