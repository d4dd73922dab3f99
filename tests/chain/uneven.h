// Layers whose states differ in size, with tapes or without, for chains: a wrong state gives a wrong gradient.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "chain/toy.h"

namespace reprise::testing {

// Layer k makes sizes[k + 1] numbers of sizes[k]. Its tape is what the sines have as their derivatives.
class Uneven {
 public:
  explicit Uneven(std::vector<std::size_t> sizes) : sizes_(std::move(sizes)) {}

  [[nodiscard]] int layers() const { return static_cast<int>(sizes_.size()) - 1; }
  [[nodiscard]] Numbers forward(int layer, const Numbers& x, Numbers* tape) const {
    Numbers y(sizes_[static_cast<std::size_t>(layer) + 1]);
    if (tape) tape->resize(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double angle = x[i % x.size()] + 0.1 * (layer % 31);
      y[i] = std::sin(angle) + 0.5 * x[(i + 1) % x.size()];
      if (tape) (*tape)[i] = std::cos(angle);
    }
    return y;
  }
  [[nodiscard]] Numbers backward(int layer, const Numbers& x, const Numbers* tape, const Numbers& gradient) const {
    Numbers result(x.size(), 0);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double cosine = tape ? (*tape)[i] : std::cos(x[i % x.size()] + 0.1 * (layer % 31));
      result[i % x.size()] += gradient[i] * cosine;
      result[(i + 1) % x.size()] += 0.5 * gradient[i];
    }
    return result;
  }

  // All states, and the gradients with respect to all states, from everything remembered and without a chain.
  struct Plain {
    std::vector<Numbers> states, gradients;
  };
  [[nodiscard]] Plain plain() const {
    Plain run;
    run.states.push_back(some_numbers(sizes_.front(), 1));
    for (int k = 0; k < layers(); ++k) run.states.push_back(forward(k, run.states.back(), nullptr));
    run.gradients.assign(run.states.size(), some_numbers(sizes_.back(), 2));
    for (int k = layers(); k-- > 0;) {
      const auto at = static_cast<std::size_t>(k);
      run.gradients[at] = backward(k, run.states[at], nullptr, run.gradients[at + 1]);
    }
    return run;
  }

 private:
  const std::vector<std::size_t> sizes_;
};

}  // namespace reprise::testing
