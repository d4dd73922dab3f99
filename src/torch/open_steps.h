// The steps that are open in the process, and the limit they put on the meter: the smallest of their budgets. Under the
// arbiter's lock.
#pragma once

#include <vector>

#include "torch/rules.h"

namespace reprise::internal {

class OpenSteps {
 public:
  // A step of the session with these rules, under the budget that they say.
  void open(const Rules&);
  void close(const Rules&);
  // nullptr: none.
  void keep_only(const Rules*);

  [[nodiscard]] bool any_of(const Rules&) const;
  [[nodiscard]] int count() const { return static_cast<int>(open_.size()); }
  // What the plan of a step under this budget may count on if so many are open: of what is not in use before the first
  // of them begins, each has the same part. Values of other steps are not among the other bytes that a plan knows of.
  [[nodiscard]] Bytes share(Bytes budget, int steps) const;

  // Bytes that are to stay free for packing while no plan accounts for them: so many, or at least so many.
  void reserve(Bytes);
  void reserve_at_least(Bytes);

 private:
  void set_limit() const;

  std::vector<const Rules*> open_;
  Bytes level_ = 0;  // other bytes when the first of them began
  Bytes reserve_ = 0;
};

}  // namespace reprise::internal
