// A copy of a value's contents that is no storage: packed (packed_copy.h), or in a tier (value_tier.h).
#pragma once

#include <c10/core/Storage.h>

namespace reprise::internal {

class ValueCopy {
 public:
  virtual ~ValueCopy() = default;
  ValueCopy(const ValueCopy&) = delete;
  ValueCopy& operator=(const ValueCopy&) = delete;

  // The contents, in a storage. Throws BudgetError, and DiskError where a file cannot be read or is damaged. Not under
  // the arbiter's lock.
  [[nodiscard]] virtual c10::Storage contents() const = 0;
  // A plan has asked for it ahead of time, and counts on it until it drops the value.
  [[nodiscard]] virtual bool fetched() const { return false; }

 protected:
  ValueCopy() = default;
};

}  // namespace reprise::internal
