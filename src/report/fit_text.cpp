#include <fmt/format.h>

#include <algorithm>

#include "report/words.h"
#include "reprise/report/fit_views.h"
#include "reprise/trace/amount.h"

namespace reprise {
using namespace internal;
namespace {

constexpr double as_good = 0.01;  // of the cost per sample: a difference too small to measure

std::string mark(const Fit& fit, std::size_t index) {
  return fit.largest == index ? ">" : fit.cheapest == index ? "*" : " ";
}

std::string row(const Fit& fit, std::size_t index, double full) {
  const FitPoint& point = fit.points[index];
  const PlanResult& result = point.result;
  std::string text = fmt::format("{} {:>9}{} {:>11}", mark(fit, index), point.size, point.recorded ? "r" : " ",
                                 format_bytes(result.keep_everything_peak));
  if (!result.has_plan()) {
    const auto& smallest = result.smallest_feasible;
    return text + (smallest ? fmt::format("  does not fit: needs {}\n", format_bytes(*smallest)) : "  does not fit\n");
  }
  text += fmt::format(" {:>9} {:>11.4g} {:>8}", percent(result.cost_ratio() - 1), point.cost_per_sample(),
                      result.simulation.replays);
  return text + "  " + bar(full > 0 ? point.cost_per_sample() / full : 0) + "\n";
}

std::string per_sample(const FitPoint& point) {
  return fmt::format("{:.4g} per sample", point.cost_per_sample());
}

}  // namespace

std::string to_text(const Fit& fit) {
  double full = 0;
  for (const FitPoint& point : fit.points) {
    if (point.result.has_plan()) full = std::max(full, point.cost_per_sample());
  }
  std::string text =
      fmt::format("{:>11}  {:>11} {:>9} {:>11} {:>8}\n", "size", "plain peak", "overhead", "per sample", "replays");
  for (std::size_t i = 0; i < fit.points.size(); ++i) text += row(fit, i, full);
  text +=
      "\n  plain peak: if nothing is evicted. overhead: of the plan for this budget. per sample: its cost over the "
      "size,\n  in microseconds if a session recorded the traces.";
  text += " r: recorded, the others are predicted.\n";
  if (fit.largest) text += "  >: the largest size that fits. *: the one that costs least per sample.\n";
  return text;
}

std::string advice(const Fit& fit) {
  if (!fit.largest) {
    if (fit.points.empty()) return "Nothing was planned.";
    const FitPoint& smallest = fit.points.front();
    std::string text = fmt::format("Nothing was found to fit {}", format_bytes(fit.budget));
    if (const auto& needs = smallest.result.smallest_feasible) {
      text += fmt::format(": even size {} needs {}", smallest.size, format_bytes(*needs));
    }
    return text + ".";
  }
  const FitPoint& largest = fit.points[*fit.largest];
  const FitPoint& cheapest = fit.points[*fit.cheapest];
  std::string text = fmt::format("The largest size {} within {} is {}, at {}, {} of overhead included",
                                 fit.reached_the_end ? "that was looked at" : "that fits", format_bytes(fit.budget),
                                 largest.size, per_sample(largest), percent(largest.result.cost_ratio() - 1));
  if (largest.cost_per_sample() > (1 + as_good) * cheapest.cost_per_sample()) {
    text += fmt::format("; size {} costs least, {}", cheapest.size, per_sample(cheapest));
  }
  return text + ".";
}

}  // namespace reprise
