// Measures how much of the allowed effort is spent: time, or moves when the caller wants the same plan every time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "reprise/plan/planner.h"

namespace reprise::internal {

class Effort {
 public:
  explicit Effort(const PlanOptions& options)
      : limit_(options.time_limit.count()), moves_limit_(options.moves), cancel_(options.cancel) {}

  // Leaves time for work that comes after the search. The share spent is that of the rest.
  void reserve(double seconds) { limit_ -= std::min(seconds, limit_ / 2); }

  void count_move() { ++moves_; }
  void count_moves(std::uint64_t moves) { moves_ += moves; }
  [[nodiscard]] std::uint64_t moves() const { return moves_; }
  [[nodiscard]] bool reads_clock() const { return !moves_limit_; }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] bool cancelled() const { return cancel_ && cancel_->load(std::memory_order_relaxed); }

  // Returns 0 at the start, 1 when everything is spent, and infinity when planning was cancelled.
  [[nodiscard]] double spent() const {
    if (cancelled()) return std::numeric_limits<double>::infinity();
    if (moves_limit_) {
      return *moves_limit_ == 0 ? 1 : static_cast<double>(moves_) / static_cast<double>(*moves_limit_);
    }
    return limit_ <= 0 ? 1 : seconds() / limit_;
  }
  // Returns the seconds left up to this share. Empty when no clock is read.
  [[nodiscard]] std::optional<double> seconds_until(double share) const {
    if (moves_limit_) return std::nullopt;
    return share * limit_ - seconds();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double limit_;
  std::optional<std::uint64_t> moves_limit_;
  const std::atomic<bool>* cancel_;
  std::uint64_t moves_ = 0;
};

}  // namespace reprise::internal
