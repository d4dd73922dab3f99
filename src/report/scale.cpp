#include "report/scale.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace reprise::internal {

double largest_shown_overhead(const Curve& curve) {
  std::vector<double> overheads;
  for (const CurvePoint& point : curve.points) {
    if (point.result) overheads.push_back(point.result->cost_ratio() - 1);
  }
  if (overheads.empty()) return 0;
  // At the smallest budget overheads can explode; then what the next one has sets the scale.
  const bool explodes = overheads.size() > 2 && overheads[1] > 0 && overheads[0] > 3 * overheads[1];
  return explodes ? 1.6 * overheads[1] : overheads[0];
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

}  // namespace reprise::internal
