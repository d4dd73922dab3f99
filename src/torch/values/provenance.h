// Provenance: which values are made of which, by the recipes of a cursor, and so which can be recomputed and which are
// needed for that. Under the arbiter's lock.
#pragma once

#include <c10/util/FunctionRef.h>

#include <vector>

#include "torch/recipes/recipe_cursor.h"
#include "torch/values/pending.h"

namespace reprise::internal {

// How the contents of a value can be had again, beside a copy.
enum class Availability : std::uint8_t {
  not_seen,       // a value of the recipes that are followed: it has not come yet
  normal,         // by its recipe; from outside: it is kept for as long as a recipe may need it
  recipe_broken,  // its recipe needs a lost value, directly or not: it is kept like one from outside
  saved_copy,     // what is kept is a copy of our own, made before the program overwrote the contents
  lost,           // the contents were overwritten while no recipe needed them
  lost_no_room,   // the contents were overwritten, and there was no room for a copy
};

// A value from outside is copied or lost; the recipe of one that was made is broken first. Nothing leads back.
[[nodiscard]] constexpr bool may_become(Availability from, Availability to) {
  switch (from) {
    case Availability::not_seen: return to == Availability::normal;
    case Availability::normal: return to > Availability::normal;
    case Availability::recipe_broken: return to > Availability::recipe_broken;
    case Availability::saved_copy:
    case Availability::lost:
    case Availability::lost_no_room: return false;
  }
  return false;
}

class Provenance {
 public:
  Provenance(const RecipeCursor& cursor, const Pending& pending) : cursor_(cursor), pending_(pending) {}

  // Returns whether the recipe of a value brings it back, wherever the value is now.
  [[nodiscard]] bool recomputable(Id value) const {
    const RecordedValue& info = cursor_.info(value);
    return info.maker != no_operator && !info.must_keep_past_inputs && of_[value].availability <= Availability::normal;
  }
  [[nodiscard]] Availability availability(Id value) const { return of_[value].availability; }
  void become(Id value, Availability);

  // Notes that the recipe to come reads the value.
  void use(Id value);
  // Returns whether a recipe of this pass reads the value.
  [[nodiscard]] bool is_used(Id value) const { return of_[value].first_use != no_operator; }
  [[nodiscard]] Id first_use(Id value) const { return of_[value].first_use; }

  // Returns whether the recipe of a pending value, directly or not, reads this one.
  [[nodiscard]] bool needed(Id value);
  // Notes that other values are pending, or recomputable, than before.
  void changed() { needed_is_known_ = false; }

  void resize(std::size_t values) { of_.resize(values); }
  // The values from `from` on are numbered from `to` on.
  void renumber(std::size_t from, std::size_t to);

 private:
  struct OfValue {
    Id first_use = no_operator;
    Availability availability = Availability::not_seen;
  };

  void find_needed();

  const RecipeCursor& cursor_;
  const Pending& pending_;
  std::vector<OfValue> of_;   // by value
  std::vector<bool> needed_;  // by value, if known
  bool needed_is_known_ = false;
};

// A value and what is made of it, as far as one follows it.
class Descendants {
 public:
  Descendants(const RecipeCursor&, Id value);

  // Returns whether the operator reads one of them.
  [[nodiscard]] bool reach(Id op) const;
  void add(Id value) { among_[value] = true; }

 private:
  const Recipes& recipes_;
  std::vector<bool> among_;  // by value
};

}  // namespace reprise::internal
