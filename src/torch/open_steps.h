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
  // A plan counts on all bytes: beside another step, only the online policy is safe.
  [[nodiscard]] bool only_one() const { return open_.size() == 1; }

  // Bytes that are to stay free for packing while no plan accounts for them: so many, or at least so many.
  void reserve(Bytes);
  void reserve_at_least(Bytes);

 private:
  void set_limit() const;

  std::vector<const Rules*> open_;
  Bytes reserve_ = 0;
};

}  // namespace reprise::internal
