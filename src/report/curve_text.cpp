#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/scale.h"
#include "report/tier_words.h"
#include "report/words.h"
#include "reprise/report/curve_views.h"
#include "reprise/trace/amount.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

constexpr double too_much = 0.2;      // overhead that most would not pay
constexpr double as_written = 0.005;  // what is written as 20 % does not pass 20 %

double overhead(const CurvePoint& point) {
  return point.result->cost_ratio() - 1;
}

std::string row(const Curve& curve, std::size_t index, double full, bool with_tiers) {
  const CurvePoint& point = curve.points[index];
  std::string text = fmt::format("{} {:>10} {:>6}", curve.knee == index ? "*" : " ", format_bytes(point.budget),
                                 share_of(point.budget, curve.keep_everything_peak));
  if (!point.result) return text + "    not planned\n";
  const PlanResult& result = *point.result;
  const bool optimal = result.status == PlanStatus::optimal;
  text += fmt::format(" {:>9} {:>9} {:>8}", percent(overhead(point)),
                      optimal ? "optimal" : percent(result.lower_bound_ratio() - 1), result.simulation.replays);
  if (with_tiers) text += fmt::format(" {:>6}", result.simulation.puts);
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
      text += "  note: " + printable_line(note) + ".\n";
    }
  }
  return text;
}

// Those that its plans use: ": 'packed', 'disk'".
std::string tiers_of(const Curve& curve) {
  std::vector<std::string> seen;
  for (const CurvePoint& point : curve.points) {
    if (!point.result) continue;
    for (const TierUse& use : tiers_used(point.result->plan, point.result->simulation)) {
      const std::string name = fmt::format("'{}'", printable(point.result->plan.tiers[use.tier].name));
      if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
    }
  }
  std::string text;
  for (const std::string& name : seen) text += (text.empty() ? ": " : ", ") + name;
  return text;
}

std::string at(const Curve& curve, const CurvePoint& point) {
  return fmt::format("{} ({} of everything)", format_bytes(point.budget),
                     share_of(point.budget, curve.keep_everything_peak));
}

}  // namespace

std::string to_text(const Curve& curve) {
  const bool with_tiers = std::any_of(curve.points.begin(), curve.points.end(), [](const CurvePoint& point) {
    return point.result && point.result->simulation.puts > 0;
  });
  std::string text = fmt::format("{:>12} {:>6} {:>9} {:>9} {:>8}{}\n", "budget", "share", "overhead", "at least",
                                 "replays", with_tiers ? fmt::format(" {:>6}", "puts") : "");
  const double full = largest_shown_overhead(curve);
  for (std::size_t i = 0; i < curve.points.size(); ++i) text += row(curve, i, full, with_tiers);
  text +=
      "\n  share: of the peak when everything is kept. at least: no plan has less overhead. replays: in one step.\n";
  if (with_tiers) text += fmt::format("  puts: values put into a tier in one step{}.\n", tiers_of(curve));
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
