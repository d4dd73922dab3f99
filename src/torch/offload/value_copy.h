// A copy of a value's contents that is no storage: packed (packed_copy.h), or in a tier (transfer_tier.h).
#pragma once

#include <c10/core/Storage.h>

namespace reprise::internal {

class ValueCopy {
 public:
  virtual ~ValueCopy() = default;
  ValueCopy(const ValueCopy&) = delete;
  ValueCopy& operator=(const ValueCopy&) = delete;

  // Returns the contents, in a storage. Throws BudgetError; MismatchError if they are not those that were put; and what
  // the tier says if it has lost them: then the copy is not usable any more. Not under the arbiter's lock.
  [[nodiscard]] virtual c10::Storage contents() const = 0;
  // False if the contents could not be put, or not be got: a replay may have them.
  [[nodiscard]] virtual bool usable() const { return true; }
  // True if a plan has asked for it ahead of time, and counts on it until it drops the value.
  [[nodiscard]] virtual bool fetched() const { return false; }
  // True if the contents that were returned last are known to be those that were put.
  [[nodiscard]] virtual bool verified() const { return false; }

 protected:
  ValueCopy() = default;
};

}  // namespace reprise::internal
