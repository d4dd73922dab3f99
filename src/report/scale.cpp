#include "report/scale.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace reprise {

double largest_shown_overhead(const Curve& curve) {
  std::vector<double> overheads;
  for (const CurvePoint& point : curve.points) {
    if (point.result) overheads.push_back(point.result->cost_ratio() - 1);
  }
  if (overheads.size() < 3) return overheads.empty() ? 0 : overheads.front();
  // Near the smallest budget overheads can explode. Half again of what the next point has keeps the rest readable.
  return std::min(overheads[0], std::max(1.0, 1.5 * overheads[1]));
}

Ticks round_ticks(double largest, int most) {
  Ticks ticks;
  if (!(largest > 0)) {
    ticks.at = {0};
    return ticks;
  }
  const double least = largest / most;  // no step may be smaller
  const double power = std::pow(10, std::floor(std::log10(least)));
  ticks.step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= least) ticks.step = factor * power;
  }
  for (int i = 0; i * ticks.step <= largest * (1 + 1e-9); ++i) ticks.at.push_back(i * ticks.step);
  return ticks;
}

ByteUnit unit_for(Bytes largest) {
  static constexpr std::array<const char*, 7> names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  ByteUnit unit;
  for (std::size_t i = 1; i < names.size() && static_cast<double>(largest) >= 1024 * unit.bytes; ++i) {
    unit = {unit.bytes * 1024, names[i]};
  }
  return unit;
}

}  // namespace reprise
