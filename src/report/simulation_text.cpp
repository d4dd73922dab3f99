#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/tier_words.h"
#include "report/words.h"
#include "reprise/report/text.h"
#include "reprise/trace/amount.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t columns = 60;

// One character for every stretch of actions, as high as the most that is live in it; full is the budget.
std::string drawing(const std::vector<Bytes>& live, Bytes budget) {
  static constexpr std::array<std::string_view, 8> heights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  const std::size_t width = std::min(columns, live.size());
  for (std::size_t column = 0; column < width; ++column) {
    const auto first = live.begin() + static_cast<std::ptrdiff_t>(column * live.size() / width);
    const auto last = live.begin() + static_cast<std::ptrdiff_t>((column + 1) * live.size() / width);
    const double share =
        budget > 0 ? static_cast<double>(*std::max_element(first, last)) / static_cast<double>(budget) : 0;
    text += heights[static_cast<std::size_t>(std::clamp(share * 8, 0.0, 7.0))];
  }
  return text;
}

std::string describe_action(const Trace& trace, const Action& action) {
  const bool names_moment = action.kind == Action::Kind::run || action.kind == Action::Kind::replay;
  return fmt::format("{} of {}", name(action.kind),
                     names_moment ? describe_moment(trace, action.target) : describe_value(trace, action.target));
}

}  // namespace

std::string to_text(const Trace& trace, const Plan& plan, const Simulation& simulation) {
  if (simulation.broken)
    return fmt::format("{}: not a valid plan\n  {}\n", name_of(trace), simulation.broken->sentence);
  const double plain = trace.total_cost();
  const double cost_ratio = plain > 0 ? simulation.cost / plain : 1;
  std::string text =
      fmt::format("{}: a valid plan within its budget of {}\n", name_of(trace), format_bytes(plan.budget));
  text += line("overhead", overhead(cost_ratio));
  std::string peak = format_bytes(simulation.peak);
  if (!plan.actions.empty()) {
    peak += fmt::format(", at action {}: {}", simulation.peak_action,
                        describe_action(trace, plan.actions[simulation.peak_action]));
  }
  text += line("peak", peak);
  text += line("replays", fmt::format("{} beside {}", simulation.replays, count(trace.moments.size(), "moment")));
  text += tier_lines(plan, simulation);
  if (simulation.waited > 0) {
    text += line("waiting", fmt::format("{} of the time is spent waiting for tiers",
                                        percent(simulation.cost > 0 ? simulation.waited / simulation.cost : 0)));
  }
  if (!simulation.live.empty()) text += line("live bytes", drawing(simulation.live, plan.budget));
  return text;
}

}  // namespace reprise
