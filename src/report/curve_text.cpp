#include <fmt/format.h>

#include <algorithm>

#include "report/scale.h"
#include "report/words.h"
#include "reprise/report/curve_views.h"
#include "reprise/trace/amount.h"

namespace reprise {
using namespace internal;
namespace {

constexpr double too_much = 0.2;      // overhead that most would not pay
constexpr double as_written = 0.005;  // what is written as 20 % does not pass 20 %

double overhead(const CurvePoint& point) {
  return point.result->cost_ratio() - 1;
}

std::string row(const Curve& curve, std::size_t index, double full, bool packing) {
  const CurvePoint& point = curve.points[index];
  std::string text = fmt::format("{} {:>10} {:>6}", curve.knee == index ? "*" : " ", format_bytes(point.budget),
                                 share_of(point.budget, curve.keep_everything_peak));
  if (!point.result) return text + "    not planned\n";
  const PlanResult& result = *point.result;
  const bool optimal = result.status == PlanStatus::optimal;
  text += fmt::format(" {:>9} {:>9} {:>8}", percent(overhead(point)),
                      optimal ? "optimal" : percent(result.lower_bound_ratio() - 1), result.simulation.replays);
  if (packing) text += fmt::format(" {:>6}", result.simulation.puts);
  const std::string drawn = bar(full > 0 ? overhead(point) / full : 0);
  return text + (drawn.empty() ? "" : "  " + drawn) + (overhead(point) > full ? "▶" : "") + "\n";
}

// What the planner wanted to say about any of the points, once.
std::string notes(const Curve& curve) {
  std::vector<std::string> seen;
  std::string text;
  for (const CurvePoint& point : curve.points) {
    if (!point.result) continue;
    for (const std::string& note : point.result->notes) {
      if (std::find(seen.begin(), seen.end(), note) != seen.end()) continue;
      seen.push_back(note);
      text += "  note: " + note + ".\n";
    }
  }
  return text;
}

std::string at(const Curve& curve, const CurvePoint& point) {
  return fmt::format("{} ({} of everything)", format_bytes(point.budget),
                     share_of(point.budget, curve.keep_everything_peak));
}

}  // namespace

std::string to_text(const Curve& curve) {
  const bool packing = std::any_of(curve.points.begin(), curve.points.end(), [](const CurvePoint& point) {
    return point.result && point.result->simulation.puts > 0;
  });
  std::string text = fmt::format("{:>12} {:>6} {:>9} {:>9} {:>8}{}\n", "budget", "share", "overhead", "at least",
                                 "replays", packing ? fmt::format(" {:>6}", "packed") : "");
  const double full = largest_shown_overhead(curve);
  for (std::size_t i = 0; i < curve.points.size(); ++i) text += row(curve, i, full, packing);
  text +=
      "\n  share: of the peak when everything is kept. at least: no plan has less overhead. replays: in one step.\n";
  if (packing) text += "  packed: values put into a tier in one step.\n";
  if (curve.knee) text += "  *: the knee, after which more bytes buy little.\n";
  return text + notes(curve);
}

std::string advice(const Curve& curve) {
  const CurvePoint& smallest = curve.points.front();
  if (curve.points.size() == 1) {
    return fmt::format("Found no plan that needs less than {}, which is what keeping everything needs.",
                       format_bytes(curve.keep_everything_peak));
  }
  if (overhead(smallest) <= 0) {
    return fmt::format("At {} there is no overhead, and nothing smaller was found to work.", at(curve, smallest));
  }
  const CurvePoint& knee = curve.knee ? curve.points[*curve.knee] : smallest;
  std::string text = fmt::format("At {} the overhead is {}", at(curve, knee), percent(overhead(knee)));
  // The last point, where everything is kept, has no overhead, so that there is one.
  const CurvePoint& acceptable = *std::find_if(curve.points.begin(), curve.points.end(), [](const CurvePoint& point) {
    return point.result && overhead(point) <= too_much + as_written;
  });
  if (&acceptable != &smallest) {
    if (!(&acceptable - 1)->result) return text + ".";  // what is right below it is not known
    const std::string below = &acceptable == &knee ? "that" : format_bytes(acceptable.budget);
    return text + fmt::format("; below {} it passes {}.", below, percent(too_much));
  }
  if (&knee == &smallest) return text + ", and nothing smaller was found to work.";
  return text + fmt::format("; even at {}, the smallest that was found to work, it is {}.",
                            format_bytes(smallest.budget), percent(overhead(smallest)));
}

}  // namespace reprise
