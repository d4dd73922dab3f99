#include "compare_findings.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

#include "live_report.h"

namespace reprise::benchmarks {
namespace {

constexpr double largest_rounding = 1e-4;  // of a gradient, relative

double share(Bytes part, Bytes whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double median_of(const ReprisePoint& point) {
  return range_of(point.measured.ratios).median;
}

// Largest peak first.
std::vector<const ReprisePoint*> measured_points(const ModelResult& model) {
  std::vector<const ReprisePoint*> points;
  for (const ReprisePoint& point : model.reprise) {
    if (!point.measured.ratios.empty()) points.push_back(&point);
  }
  std::sort(points.begin(), points.end(), [](auto* a, auto* b) { return a->measured.peak > b->measured.peak; });
  return points;
}

// Whether the middle halves of the two have nothing in common.
bool are_apart(const std::vector<double>& a, const std::vector<double>& b) {
  const Spread first = spread_of(a), second = spread_of(b);
  return first.high < second.low || second.high < first.low;
}

}  // namespace

Soundness soundness(const Measured& measured) {
  if (measured.gradient_error && *measured.gradient_error > largest_rounding) return Soundness::wrong_gradients;
  if (!measured.buffers_equal) return Soundness::wrong_state;
  return measured.gradient_error ? Soundness::rounded : Soundness::exact;
}

bool is_wrong(Soundness sound) {
  return sound == Soundness::wrong_state || sound == Soundness::wrong_gradients;
}

bool kept_its_promises(const ReprisePoint& point) {
  return point.measured.peak <= point.budget && soundness(point.measured) == Soundness::exact;
}

Range range_of(const std::vector<double>& values) {
  const double median = spread_of(values).median;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, median, *most};
}

double share_of_plain(const RivalResult& rival, const ModelResult& model) {
  const bool cpp = rival.rival.engine == Engine::cpp || !model.python;
  return share(rival.measured.peak, cpp ? model.cpp.peak : model.python->peak);
}

double share_of_plain(const ReprisePoint& point, const ModelResult& model) {
  return share(point.measured.peak, model.cpp.peak);
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

std::vector<Finding> findings_of(const ModelResult& model) {
  const std::vector<const ReprisePoint*> points = measured_points(model);
  std::vector<Finding> findings;
  for (const RivalResult& rival : model.rivals) {
    if (rival.measured.ratios.empty()) continue;
    Finding finding{.rival = &rival};
    finding.sound = soundness(rival.measured);
    finding.share = share_of_plain(rival, model);
    finding.time = range_of(rival.measured.ratios).median;
    for (const ReprisePoint* const point : points) {
      if (share_of_plain(*point, model) > finding.share) continue;
      if (finding.at_peak == nullptr) finding.at_peak = point;
      if (median_of(*point) > finding.time) break;
      finding.at_time = point;
    }
    if (finding.at_peak != nullptr) {
      finding.gain = finding.time - median_of(*finding.at_peak);
      finding.is_clear = are_apart(finding.at_peak->measured.ratios, rival.measured.ratios);
    }
    finding.needs_less = finding.at_time != nullptr && share_of_plain(*finding.at_time, model) < finding.share;
    findings.push_back(finding);
  }
  std::stable_sort(findings.begin(), findings.end(), [](auto& a, auto& b) { return a.share > b.share; });
  return findings;
}

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::string text_of(const Range& range) {
  return fixed(range.median, 2) + " (" + fixed(range.least, 2) + ".." + fixed(range.most, 2) + ")";
}

}  // namespace reprise::benchmarks
