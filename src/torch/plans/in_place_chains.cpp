#include "torch/plans/in_place_chains.h"

namespace reprise::internal {
namespace {

// By value: how many operators and events need it, and the last operator that does. Events add 2, so a value that an
// event needs never counts as having one user.
struct Users {
  std::vector<int> count;
  std::vector<Id> last;
};

Users users_in(const RecordedPass& pass) {
  const Recipes& recipes = *pass.recipes;
  Users users{std::vector<int>(recipes.values.size(), 0), std::vector<Id>(recipes.values.size(), no_operator)};
  for (Id op = 0; op < static_cast<Id>(recipes.operators.size()); ++op) {
    Id before = no_value;
    for (const Reference& reference : recipes.references_of(op)) {
      if (reference.value == no_value || reference.value == before) continue;
      before = reference.value;
      ++users.count[reference.value];
      users.last[reference.value] = op;
    }
  }
  for (const Need& need : pass.profile.needs) users.count[need.value] += 2;
  return users;
}

}  // namespace

// An operator goes on if all it makes is one value, which a later one writes into and nothing else needs.
InPlaceChains::InPlaceChains(const RecordedPass& pass) {
  const Recipes& recipes = *pass.recipes;
  const auto operators = static_cast<Id>(recipes.operators.size());
  const Users users = users_in(pass);
  last_.resize(static_cast<std::size_t>(operators));
  next_.assign(static_cast<std::size_t>(operators), no_operator);
  for (Id op = operators - 1; op >= 0; --op) {
    last_[op] = op;
    const auto outputs = recipes.outputs_of(op);
    if (outputs.size() != 1 || recipes.operators[op].why_not_replayable) continue;
    const Id value = outputs[0].value;
    if (users.count[value] != 1 || recipes.values[value].maker != op || recipes.values[value].must_keep_past_inputs)
      continue;
    const Id next = users.last[value];
    if (recipes.operators[next].why_not_replayable) continue;
    for (const Write& write : recipes.writes_of(next)) {
      if (write.before != value || write.access != Access::write) continue;
      last_[op] = last_[next];
      next_[op] = next;
    }
  }
}

}  // namespace reprise::internal
