#include "torch/values/provenance.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

void Provenance::become(Id value, Availability availability) {
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(may_become(of_[value].availability, availability));
  of_[value].availability = availability;
}

void Provenance::use(Id value) {
  if (!is_used(value)) of_[value].first_use = cursor_.next();
}

bool Provenance::needed(Id value) {
  if (!std::exchange(needed_is_known_, true)) find_needed();
  return static_cast<std::size_t>(value) < needed_.size() && needed_[value];
}

void Provenance::find_needed() {
  needed_.assign(cursor_.values(), false);
  std::vector<Id> open;
  const auto add = [&](Id value) {
    if (needed_[value]) return;
    needed_[value] = true;
    if (recomputable(value)) open.push_back(value);
  };
  for (Id v = 0; v < static_cast<Id>(of_.size()); ++v) {
    if (pending_.any_of(v) && recomputable(v)) add(v);
  }
  while (!open.empty()) {
    const Id value = open.back();
    open.pop_back();
    for (const Reference& reference : cursor_.recipes().references_of(cursor_.info(value).maker)) {
      if (reference.value != no_value) add(reference.value);
    }
  }
}

void Provenance::renumber(std::size_t from, std::size_t to) {
  of_.erase(of_.begin() + static_cast<std::ptrdiff_t>(to), of_.begin() + static_cast<std::ptrdiff_t>(from));
  changed();
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
