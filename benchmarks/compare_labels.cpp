#include "compare_labels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace reprise::benchmarks {
namespace {

constexpr int directions = 12;
constexpr double letter = 0.54;  // the width of one, on average, as a share of the type's size

double area(const Box& box) {
  return (box.right - box.left) * (box.bottom - box.top);
}

}  // namespace

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return width > 0 && height > 0 ? width * height : 0;
}

LabelPlace Labels::place(double x, double y, const std::string& text) {
  const double width = letter * size_ * static_cast<double>(text.size());
  LabelPlace best;
  double least = std::numeric_limits<double>::max();
  for (const double distance : {11.0, 24.0, 38.0, 54.0, 72.0}) {
    for (int direction = 0; direction < directions; ++direction) {
      const LabelPlace place = candidate(x, y, width, direction, distance);
      const double cost = covered(place.box) + distance;  // near is better than far
      if (cost >= least) continue;
      least = cost;
      best = place;
    }
  }
  avoid(best.box);
  return best;
}

// In a direction counted around the clock from the right, anchored so that the text leads away from the mark.
LabelPlace Labels::candidate(double x, double y, double width, int direction, double distance) const {
  const double angle = 2 * std::numbers::pi * direction / directions;
  const double across = std::cos(angle), down = std::sin(angle);
  LabelPlace place;
  place.far_from_mark = distance > 20;
  place.x = x + distance * across;
  place.y = y + distance * down + 0.35 * size_;
  place.anchor = across > 0.3 ? "start" : across < -0.3 ? "end" : "middle";
  const double left = place.x - (place.anchor == "start" ? 0 : place.anchor == "end" ? width : width / 2);
  place.box = {left, place.y - 0.8 * size_, left + width, place.y + 0.25 * size_};
  return place;
}

// Everything outside of the panel counts as covered many times.
double Labels::covered(const Box& box) const {
  double sum = 10 * (area(box) - overlap(box, panel_));
  for (const Box& taken : taken_) sum += overlap(box, taken);
  return sum;
}

}  // namespace reprise::benchmarks
