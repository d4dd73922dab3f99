// What transfers take, learnt from those that were seen: so much for each, and so much for each byte.
#pragma once

#include <algorithm>

#include "torch/offload/tiers.h"

namespace reprise::internal {

// The line through what was seen lately, where large ones have a say by their errors in each byte. Neither of its parts
// is ever free.
class LearntLine {
 public:
  [[nodiscard]] const TierLine& line() const { return line_; }

  void learn(Bytes bytes, double seen) {
    constexpr double memory = 0.95, rare = 5, share = 0.01, alike = 0.1, small = 64 << 10;
    constexpr int settled = 8;
    const auto size = static_cast<double>(std::max<Bytes>(bytes, 1));
    seen = std::max(seen, 1e-3);
    if (++count_ > settled) {  // a thread that was kept from working is no reason to believe anything else
      seen = std::clamp(seen, line_.at(bytes) / rare, line_.at(bytes) * rare);
    }
    const double weight = 1 / ((small + size) * (small + size));
    for (double* sum : {&all_, &size_, &square_, &time_, &product_}) *sum *= memory;
    all_ += weight;
    size_ += weight * size;
    square_ += weight * size * size;
    time_ += weight * seen;
    product_ += weight * size * seen;
    const double mean_size = size_ / all_, mean_time = time_ / all_;
    const double variance = square_ / all_ - mean_size * mean_size;
    if (count_ > 1 && variance > alike * alike * mean_size * mean_size) {
      line_.byte = (product_ / all_ - mean_size * mean_time) / variance;
      line_.each = mean_time - line_.byte * mean_size;
    } else {  // all of one size: nothing tells its parts from each other
      const double scale = mean_time / (line_.each + line_.byte * mean_size);
      line_ = {line_.each * scale, line_.byte * scale};
    }
    line_.each = std::max(line_.each, share * mean_time);
    line_.byte = std::max(line_.byte, share * mean_time / mean_size);
  }

 private:
  TierLine line_{20, 5e-4};  // before anything was seen
  int count_ = 0;
  double all_ = 0, size_ = 0, square_ = 0, time_ = 0, product_ = 0;  // of weights, and of what they weigh
};

}  // namespace reprise::internal
