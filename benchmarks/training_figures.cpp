#include "training_figures.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace reprise::benchmarks {

void Sample::add(const Sample& other) {
  seconds += other.seconds;
  wall += other.wall;
  peak = std::max(peak, other.peak);
  if (other.gradient_error) gradient_error = std::max(gradient_error.value_or(0), *other.gradient_error);
  buffers_equal = buffers_equal && other.buffers_equal;
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("[bench] no values");
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
  };
  return {at(0.25), at(0.5), at(0.75)};
}

std::vector<double> shares_to_measure(std::vector<double> rivals, bool quick) {
  constexpr double same = 0.01, far_apart = 0.2;
  std::sort(rivals.begin(), rivals.end());
  std::vector<double> shares;
  for (const double rival : rivals) {
    if (shares.empty() || rival > shares.back() + same) shares.push_back(rival);
  }
  if (shares.empty()) shares.push_back(0.5);
  const std::size_t asked = shares.size();
  const double smallest = shares.front();
  const std::vector<double> below = quick ? std::vector<double>{0.8} : std::vector<double>{0.8, 0.65};
  for (std::size_t i = 0; !quick && i < asked; ++i) {
    const double low = shares[i], high = i + 1 < asked ? shares[i + 1] : 1;
    const double parts = std::ceil((high - low) / far_apart);
    for (int k = 1; k < static_cast<int>(parts); ++k) shares.push_back(std::lerp(low, high, k / parts));
  }
  for (const double part : below) shares.push_back(part * smallest);
  std::sort(shares.rbegin(), shares.rend());
  return shares;
}

}  // namespace reprise::benchmarks
