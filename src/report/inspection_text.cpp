#include <fmt/format.h>

#include <algorithm>

#include "report/floor_parts.h"
#include "report/words.h"
#include "reprise/report/inspection.h"
#include "reprise/trace/amount.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t most_named = 5;
constexpr std::size_t maker_width = 24;

std::string share_of_cost(double part, double whole) {
  return whole > 0 ? percent(part / whole) : "0 %";
}

std::string counts(const Inspection& inspection) {
  std::string text = line("operators", fmt::format("{}", inspection.operators));
  std::string moments = fmt::format("{}", inspection.moments);
  if (inspection.events > 0) moments += fmt::format(", {} of them events", inspection.events);
  text += line("moments", moments);
  std::string values = fmt::format("{}, {} together", inspection.values, format_bytes(inspection.value_bytes));
  if (inspection.outside > 0) {
    values += fmt::format("; {} of them from outside, {}", inspection.outside, format_bytes(inspection.outside_bytes));
  }
  text += line("values", values);
  std::string cost = fmt::format("{:.6g} for running everything once", inspection.cost);
  if (inspection.event_cost > 0) {
    cost += fmt::format(", {} of it in events", share_of_cost(inspection.event_cost, inspection.cost));
  }
  return text + line("cost", cost);
}

std::string tiers(const Trace& trace) {
  std::string text;
  for (const Tier& tier : trace.tiers) {
    text += line("tier", fmt::format("'{}' takes {}{}{}", printable(tier.name), count(tier.entries.size(), "value"),
                                     tier.capacity ? ", " + format_bytes(*tier.capacity) + " at most" : "",
                                     tier.in_budget ? "" : ", outside the budget"));
  }
  return text;
}

std::string largest(const Trace& trace, const std::vector<Id>& values) {
  std::string text;
  const std::size_t named = std::min(most_named, values.size());
  for (std::size_t i = 0; i < named; ++i) text += line("", describe_value(trace, values[i]));
  if (named < values.size()) {
    Bytes rest = 0;
    for (std::size_t i = named; i < values.size(); ++i) rest += trace.values[values[i]].bytes;
    text += line("", fmt::format("and {} more with {}", values.size() - named, format_bytes(rest)));
  }
  return text;
}

// Values from outside have no names, so that only their number says something.
std::string fixed(const Trace& trace, const Inspection& inspection) {
  if (inspection.fixed.empty()) return line("fixed", "nothing: every value can be recomputed");
  std::vector<Id> made;
  Bytes made_bytes = 0;
  for (const Id v : inspection.fixed) {
    if (!trace.values[v].maker) continue;
    made.push_back(v);
    made_bytes += trace.values[v].bytes;
  }
  const std::size_t outside = inspection.fixed.size() - made.size();
  std::string text;
  if (outside > 0) {
    text += line("fixed", fmt::format("{} from outside, {}: can be kept or held, but not recomputed",
                                      count(outside, "value"), format_bytes(inspection.fixed_bytes - made_bytes)));
  }
  if (made.empty()) return text + line(text.empty() ? "fixed" : "", "everything else can be recomputed");
  text += line(text.empty() ? "fixed" : "", fmt::format("{} of operators that may not be replayed, {}:",
                                                        count(made.size(), "value"), format_bytes(made_bytes)));
  return text + largest(trace, made);
}

std::string peaks(const Trace& trace, const Inspection& inspection) {
  std::string text;
  if (const auto& peak = inspection.peak) {
    std::string also;
    if (peak->workspace > 0) also += fmt::format(", {} of it workspace", format_bytes(peak->workspace));
    if (peak->other > 0) also += fmt::format(", {} of it other bytes", format_bytes(peak->other));
    text += line("peak", fmt::format("{} if everything is kept, at {}{}", format_bytes(peak->bytes),
                                     describe_moment(trace, peak->moment), also));
    text += line("", "the largest values then:") + largest(trace, peak->values);
    const Blocker& floor = inspection.floor;
    text += line("floor", fmt::format("{} ({} of the peak): no plan needs less", format_bytes(floor.bytes),
                                      share_of(floor.bytes, peak->bytes)));
    text += line("set by", describe_floor(trace, floor));
  }
  return text + fixed(trace, inspection);
}

std::string candidates(const Trace& trace, const Inspection& inspection) {
  if (inspection.worth_most.empty())
    return "\nNo value is worth evicting: none can be replayed and stays unused for a while.\n";
  std::string text = "\nWorth most to evict:\n";
  text += fmt::format("  {:>7}  {:<{}} {:>10}  {:>13} {:>7} {:>8} {:>7}  {}\n", "value", "made by", maker_width,
                      "bytes", "moments", "unused", "recompute", "replays", "at peak");
  for (const Inspection::Candidate& candidate : inspection.worth_most) {
    text += fmt::format(
        "  {:>7}  {:<{}} {:>10}  {:>13} {:>7} {:>8} {:>7}  {}\n", candidate.value,
        maker_of(trace, candidate.value, maker_width), maker_width, format_bytes(trace.values[candidate.value].bytes),
        fmt::format("{}-{}", candidate.from, candidate.until), share_of_cost(candidate.unused, inspection.cost),
        inspection.cost > 0 ? small_percent(candidate.recompute / inspection.cost) : "0 %", candidate.replays,
        candidate.at_peak ? "yes" : "no");
  }
  return text +
         "\n"
         "  moments: the longest stretch in which nothing needs the value. unused: what runs in that stretch, as a "
         "share of\n"
         "  the cost. recompute: the cost of replaying the value afterwards, with what is gone by then, as such a "
         "share; "
         "in how\n"
         "  many replays. at peak: it is unused where the peak is, so evicting it makes room there. The best have "
         "many\n"
         "  bytes, unused for long, recomputed for little: bytes x unused / recompute.\n";
}

}  // namespace

std::string to_text(const Trace& trace, const Inspection& inspection) {
  return name_of(trace) + "\n" + counts(inspection) + tiers(trace) + peaks(trace, inspection) +
         candidates(trace, inspection);
}

}  // namespace reprise
