// Pending saved tensors: what autograd has saved in a pass, by value, and backward has not released yet. Under the
// arbiter's lock.
#pragma once

#include <c10/util/SmallVector.h>

#include <atomic>
#include <span>
#include <vector>

#include "torch/recipes/saved_tensor.h"

namespace reprise::internal {

class Pending {
 public:
  void resize(std::size_t values) { of_.resize(values); }

  [[nodiscard]] std::span<SavedTensor* const> of(Id value) const { return of_[value]; }
  [[nodiscard]] bool any_of(Id value) const { return !of_[value].empty(); }
  void add(SavedTensor&, Id value);
  void remove(SavedTensor&);
  // Removes those of a value that saw no write, and returns them.
  [[nodiscard]] std::vector<SavedTensor*> take_unmoved(Id value);

  // May be called on any thread.
  [[nodiscard]] int count() const { return count_; }
  // Returns true if there were some, and now there are none.
  [[nodiscard]] bool is_over() const { return drained_ && count_ == 0; }

  // Notes that a pass of backward has ended. Returns true if all that was saved since the one before is gone, and what
  // is still pending is older.
  [[nodiscard]] bool end_backward();

  // The values from `from` on are numbered from `to` on.
  void renumber(std::size_t from, std::size_t to);

 private:
  void evict(SavedTensor&);

  std::vector<c10::SmallVector<SavedTensor*, 2>> of_;  // by value
  std::atomic<int> count_ = 0;
  std::atomic<bool> drained_ = false;
  int fresh_ = 0;      // of them: added since the last pass of backward has ended
  int backwards_ = 0;  // passes that have ended
};

}  // namespace reprise::internal
