// The steps that are open in the process, and the limits they put on the places they are at: the smallest of their
// budgets. Under the arbiter's lock.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "torch/values/rules.h"

namespace reprise::internal {

class OpenSteps {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static OpenSteps& of_process();

  // A step of the session with these rules, at the places and under the budgets that they say.
  void open(const Rules&);
  void close(const Rules&);
  // They have another place, and these budgets, from now on, and so have all steps of theirs that are open.
  void settle(Rules&, const Place&, std::span<const Bytes> budgets);
  // nullptr: none.
  void keep_only(const Rules*);

  [[nodiscard]] bool any_of(const Rules&) const;
  [[nodiscard]] int count(const Place&) const;
  // What the plan of a step under this budget may count on if so many are open there: of what is not in use before the
  // first of them begins, each has the same part. Values of other steps are not among the other bytes that a plan knows
  // of.
  [[nodiscard]] Bytes share(const Place&, Bytes budget, int steps) const;

  // Bytes that are to stay free for packing while no plan accounts for them: so many, or at least so many.
  void reserve(const Place&, Bytes);
  void reserve_at_least(const Place&, Bytes);

 private:
  struct AtPlace {
    Bytes level = 0;  // other bytes when the first of the open steps began
    Bytes reserve = 0;
  };

  // A step of theirs is no longer open.
  void leave(const Rules&) const;
  void set_limits(const Rules&) const;
  void set_limit(const Place&) const;

  std::vector<const Rules*> open_;
  std::map<const Place*, AtPlace> at_;  // where steps were open
};

}  // namespace reprise::internal
