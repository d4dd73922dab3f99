#include "torch/values/pending.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

void Pending::add(SavedTensor& saved, Id value) {
  saved.value = value;
  saved.attached_in = backwards_;
  of_[value].push_back(&saved);
  ++count_;
  ++fresh_;
}

void Pending::evict(SavedTensor& saved) {
  auto& all = of_[saved.value];
  // From the back: backward releases first what was saved last, and a parameter may be saved a thousand times.
  all.erase(std::find(all.rbegin(), all.rend(), &saved).base() - 1);
  if (saved.attached_in == backwards_) --fresh_;
}

void Pending::remove(SavedTensor& saved) {
  evict(saved);
  if (--count_ == 0) drained_ = true;
}

std::vector<SavedTensor*> Pending::take_unmoved(Id value) {
  std::vector<SavedTensor*> moving;
  for (SavedTensor* const saved : of_[value]) {
    if (saved->unmoved()) moving.push_back(saved);
  }
  for (SavedTensor* const saved : moving) {
    evict(*saved);
    --count_;
  }
  return moving;
}

bool Pending::end_backward() {
  ++backwards_;
  return std::exchange(fresh_, 0) == 0;
}

void Pending::renumber(std::size_t from, std::size_t to) {
  const std::size_t count = of_.size() - from;
  for (std::size_t i = 0; i < count; ++i) {
    of_[to + i] = std::move(of_[from + i]);
    for (SavedTensor* const saved : of_[to + i]) saved->value = static_cast<Id>(to + i);
  }
  of_.resize(to + count);
}

}  // namespace reprise::internal
