#include <fmt/format.h>

#include "report/tier_words.h"
#include "report/words.h"
#include "reprise/report/text.h"
#include "reprise/trace/amount.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t values_named = 4;  // of what stands in the way

std::string amount_of_budget(const PlanResult& result) {
  return fmt::format("{} ({} of everything)", format_bytes(result.budget),
                     share_of(result.budget, result.keep_everything_peak));
}

std::string proof(const PlanResult& result) {
  if (result.status == PlanStatus::optimal) return "optimal: no plan for this budget costs less";
  std::string text = fmt::format("costs at most {} more than the best possible plan", percent(result.gap()));
  const double bound = result.lower_bound_ratio() - 1;
  return bound > 0 ? text + fmt::format(", whose overhead is at least {}", percent(bound)) : text;
}

std::string effort(const PlanResult& result) {
  std::string text = fmt::format("{}, {}", result.planner, duration(result.seconds));
  if (result.moves > 1) text += fmt::format(", {} moves", result.moves);
  if (result.cancelled) text += ", stopped before its time";
  return text;
}

std::string notes(const PlanResult& result) {
  std::string text;
  if (result.status == PlanStatus::optimal) return text;  // nothing was missing
  for (const std::string& note : result.notes) text += line("note", note);
  return text;
}

std::string blocker_text(const Trace& trace, const PlanResult& result) {
  const Blocker& blocker = *result.blocker;
  std::string text = fmt::format("{} needs {}", describe_moment(trace, blocker.moment), format_bytes(blocker.bytes));
  if (blocker.proven) text += ", whatever is evicted";
  const std::size_t named = std::min(values_named, blocker.values.size());
  text = line("in the way", text + (named > 0 ? ":" : ""));
  for (std::size_t i = 0; i < named; ++i) text += line("", describe_value(trace, blocker.values[i]));
  if (named < blocker.values.size()) text += line("", fmt::format("and {} more", blocker.values.size() - named));
  return text;
}

std::string infeasible_text(const Trace& trace, const PlanResult& result) {
  const bool impossible = result.budget < result.floor;
  std::string text = fmt::format("{}: {} {}\n", name_of(trace),
                                 impossible ? "no plan can fit into" : "found no plan for", amount_of_budget(result));
  if (result.smallest_feasible) {
    // Where nothing could fit, this planner was not even asked.
    const bool by_best = impossible && result.planner != "best";
    text += line("try", fmt::format("--budget {}{}, the smallest that was found to work: {} ({} of everything)",
                                    *result.smallest_feasible, by_best ? " --planner best" : "",
                                    format_bytes(*result.smallest_feasible),
                                    share_of(*result.smallest_feasible, result.keep_everything_peak)));
  }
  text += line("floor", fmt::format("{}: no plan needs less", format_bytes(result.floor)));
  if (result.blocker) text += blocker_text(trace, result);
  return text + line("planner", effort(result)) + notes(result);
}

}  // namespace

std::string to_text(const Trace& trace, const PlanResult& result) {
  if (!result.has_plan()) return infeasible_text(trace, result);
  const Simulation& simulation = result.simulation;
  std::string text = fmt::format("{}: a plan for {}\n", name_of(trace), amount_of_budget(result));
  text += line("overhead", overhead(result.cost_ratio()));
  text += line("proof", proof(result));
  text += line("peak", fmt::format("{} of {}", format_bytes(simulation.peak), format_bytes(result.budget)));
  text += line("replays", fmt::format("{} beside {}", simulation.replays, count(trace.moments.size(), "moment")));
  return text + tier_lines(result.plan, simulation) + line("planner", effort(result)) + notes(result);
}

}  // namespace reprise
