#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace reprise::internal {

// Time limits for a search whose first result is enough: short ones first, each twice the one before, so that the wait
// is not much longer than the result takes. The last limit is all that is left of the whole, and at least half of it.
class GrowingLimits {
 public:
  using Seconds = std::chrono::duration<double>;
  GrowingLimits(Seconds first, Seconds whole) : next_(first), whole_(whole) {}

  // Returns the next limit. Empty if all time was given.
  [[nodiscard]] std::optional<Seconds> next() {
    if (is_over_) return std::nullopt;
    given_ += limit_;
    const Seconds left = whole_ - given_;
    is_over_ = !(left > 3 * next_);
    limit_ = is_over_ ? left : next_;
    next_ *= 2;
    return limit_;
  }
  // Returns the time that was given before the last limit.
  [[nodiscard]] Seconds given_before() const { return given_; }

 private:
  Seconds next_;
  const Seconds whole_;
  Seconds limit_{0}, given_{0};
  bool is_over_ = false;
};

}  // namespace reprise::internal
