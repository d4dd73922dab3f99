// The first screen of the page: one sentence, and the numbers it rests on.
#include <fmt/format.h>

#include <algorithm>

#include "report/page_parts.h"
#include "report/svg.h"
#include "report/tier_words.h"
#include "report/words.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

std::string tile(std::string_view label, std::string_view value, std::string_view note) {
  return fmt::format("<div class=\"tile\"><dt>{}</dt><dd>{}{}</dd></div>\n", label, value,
                     note.empty() ? "" : fmt::format(" <small>{}</small>", note));
}

std::string bytes(std::string_view key, Bytes value) {
  return number(key, value, format_bytes(value));
}

std::string counted(std::string_view key, std::int64_t value) {
  return number(key, value, fmt::format("{}", value));
}

std::string verdict(const PageData& data) {
  const Bytes before = data.before.peak;
  if (!data.after) {
    return fmt::format("Keeping everything takes <strong>{}</strong>. Without a plan, nothing is evicted.",
                       format_bytes(before));
  }
  const Bytes after = data.after->peak;
  const double added = data.cost_ratio() - 1;
  if (after > data.plan().budget) {
    return fmt::format(
        "Other bytes have outgrown the plan: by itself it would take <strong>{}</strong>. The budget of "
        "{} holds, because more is evicted beside it.",
        format_bytes(after), format_bytes(data.plan().budget));
  }
  if (after >= before)
    return fmt::format("The step takes <strong>{}</strong>, and keeps everything.", format_bytes(after));
  const double less = before > 0 ? 1 - static_cast<double>(after) / static_cast<double>(before) : 0;
  return fmt::format("The step runs in <strong>{}</strong> instead of {}: {} less memory, {}.", format_bytes(after),
                     format_bytes(before), html(percent(less)),
                     added > 0 ? "for " + html(percent(added)) + " more time" : "at no cost");
}

std::string plan_tiles(const PageData& data) {
  std::string tiles;
  if (data.after) tiles += tile("Budget", bytes("budget_bytes", data.plan().budget), "");
  tiles += tile("Peak before", bytes("peak_before_bytes", data.before.peak), "everything is kept");
  if (!data.after) {
    return tiles + tile("Floor", bytes("floor_bytes", data.inspection.floor.bytes), "no plan needs less");
  }
  const Simulation& after = *data.after;
  tiles += tile("Peak after", bytes("peak_after_bytes", after.peak),
                share_of(after.peak, data.before.peak) + " of everything");
  const double added = data.cost_ratio() - 1;
  tiles += tile("Overhead", number("overhead", added, percent(added)), "more time");
  tiles += tile("Replays", counted("replays", static_cast<std::int64_t>(after.replays)), "in one step");
  for (const TierUse& use : tiers_used(data.plan(), after)) {
    tiles += tile(html(capitalized(where(data.plan().tiers[use.tier]))),
                  counted(puts_key(use.tier), static_cast<std::int64_t>(use.puts)),
                  use.puts == 1 ? "value in one step" : "values in one step");
  }
  return tiles;
}

// Returns the tiles of all devices but the first, which everything else is about.
std::string other_devices(const Summary& summary) {
  std::string tiles;
  for (std::size_t i = 1; i < summary.devices.size(); ++i) {
    const DeviceSummary& device = summary.devices[i];
    const std::string budget = device.budget ? "of a budget of " + format_bytes(*device.budget) : "without a budget";
    tiles += tile("Measured peak on " + html(device.device),
                  bytes(fmt::format("measured_peak_of_device_{}_bytes", i), device.peak_last_step), budget);
  }
  return tiles;
}

std::string measured_tiles(const Summary& summary) {
  const bool on_cpu = summary.devices.front().device == "cpu" && summary.devices.size() < 2;
  std::string tiles = tile("Measured peak" + (on_cpu ? "" : " on " + html(summary.devices.front().device)),
                           bytes("measured_peak_bytes", summary.peak_last_step()), "in the last step");
  if (summary.peak() > summary.peak_last_step()) {
    tiles += tile("Highest peak", bytes("measured_highest_peak_bytes", summary.peak()), "in any step");
  }
  tiles += other_devices(summary);
  tiles += tile("Steps", counted("steps", summary.steps),
                summary.divergences > 0 ? count(static_cast<std::size_t>(summary.divergences), "divergence") : "");
  tiles += tile("Measured overhead", number("measured_overhead", summary.overhead(), percent(summary.overhead())),
                what_was_added(summary));
  tiles += tile("Followed its plan",
                number("followed_plan", Bytes{summary.followed_plan ? 1 : 0}, summary.followed_plan ? "yes" : "no"),
                "in the last step");
  tiles += tile("Verified", counted("verified", summary.verified),
                summary.verified == 1 ? "value, bit for bit" : "values, bit for bit");
  return tiles;
}

}  // namespace

std::string headline(const PageData& data) {
  std::string text = "<section aria-label=\"Summary\">\n<p class=\"verdict\">" + verdict(data) + "</p>\n";
  text += "<dl class=\"tiles\">\n" + plan_tiles(data) + "</dl>\n";
  if (data.input.summary) {
    text += "<h2>What was measured</h2>\n<dl class=\"tiles\">\n" + measured_tiles(*data.input.summary) + "</dl>\n";
  }
  return text + "</section>\n";
}

}  // namespace reprise::internal
