#include "reprise/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "report/words.h"
#include "reprise/trace/amount.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t named_of_each = 3, kept_named = 5;

std::string counted(std::int64_t number, std::string_view noun) {
  return count(static_cast<std::size_t>(std::max<std::int64_t>(number, 0)), noun);
}

// Of parts of a step: "0.4 ms", "120 ms", "3.5 s".
std::string cpu_time(double seconds) {
  if (seconds >= 0.9995) return duration(seconds);
  const double milliseconds = 1000 * std::max(seconds, 0.0);
  return milliseconds < 9.95 ? fmt::format("{:.1f} ms", milliseconds) : fmt::format("{:.0f} ms", milliseconds);
}

std::string headline(const Summary& summary) {
  const std::string name = summary.name.empty() ? "session" : printable(summary.name);
  const std::string steps = summary.steps > 0 ? counted(summary.steps, "step") : "no step has ended";
  const bool said = summary.devices.front().device != "cpu" || summary.devices.size() > 1;
  const std::string where = said ? " on " + printable(summary.devices.front().device) : "";
  if (!summary.budget()) return fmt::format("{}: {}, no budget{}\n", name, steps, where);
  return fmt::format("{}: {}, a budget of {}{}\n", name, steps, format_bytes(*summary.budget()), where);
}

std::string peaks(const Summary& summary) {
  std::string text = format_bytes(summary.peak_last_step()) + " in the last step";
  if (summary.peak() > summary.peak_last_step()) text += fmt::format(", {} in any", format_bytes(summary.peak()));
  text = line("peak", text);
  if (summary.peak_if_kept) {
    text += line("", fmt::format("{} if nothing were evicted: {} of that", format_bytes(*summary.peak_if_kept),
                                 share_of(summary.peak_last_step(), *summary.peak_if_kept)));
  }
  return text;
}

// Of a session with one device, everything else is about it.
std::string devices(const Summary& summary) {
  std::string text;
  if (summary.devices.size() < 2) return text;
  for (const DeviceSummary& device : summary.devices) {
    const std::string budget = device.budget ? "of a budget of " + format_bytes(*device.budget) : "without a budget";
    text += line(text.empty() ? "devices" : "",
                 fmt::format("{}: a peak of {} {}, {} evicted", printable(device.device),
                             format_bytes(device.peak_last_step), budget, format_bytes(device.evicted_last_step)));
  }
  return text;
}

std::string disk(const Summary& summary) {
  std::string text;
  if (summary.disk_put_last_step > 0 || summary.disk_got_last_step > 0) {
    text += line("disk", fmt::format("{} written, {} read, in {}; the step waited for {}",
                                     format_bytes(summary.disk_put_last_step), format_bytes(summary.disk_got_last_step),
                                     cpu_time(summary.disk_seconds), cpu_time(summary.disk_wait_seconds)));
  }
  if (summary.host_put_last_step > 0 || summary.host_got_last_step > 0) {
    text += line("host", fmt::format("{} copied to its memory, {} back; at most {} there",
                                     format_bytes(summary.host_put_last_step), format_bytes(summary.host_got_last_step),
                                     format_bytes(summary.host_peak)));
  }
  if (summary.disk_failures > 0) {
    text += line(text.empty() ? "disk" : "",
                 fmt::format("{} so far, the newest: {}", counted(summary.disk_failures, "failure"),
                             printable(summary.last_disk_failure)));
  }
  return text;
}

std::string evicted(const Summary& summary) {
  std::string text = line("evicted", summary.evicted_last_step() > 0 ? format_bytes(summary.evicted_last_step())
                                                                     : "nothing in the last step");
  if (summary.packed_last_step > 0) {
    text += line("packed", fmt::format("{} into {}", format_bytes(summary.packed_last_step),
                                       format_bytes(summary.packed_to_last_step)));
  }
  return text + disk(summary);
}

std::string work(const Summary& summary) {
  std::string text;
  if (summary.replays > 0) {
    text += line("replays",
                 fmt::format("{}, in {}", counted(summary.replays, "operator"), cpu_time(summary.replay_seconds)));
  }
  if (summary.step_seconds <= 0) return text;
  std::string added = percent(summary.overhead());
  if (summary.overhead() > 0) {
    const double extra = summary.replay_seconds + summary.pack_seconds + summary.disk_wait_seconds;
    added += fmt::format(": {} of {} beside {}", cpu_time(extra), what_was_added(summary),
                         cpu_time(summary.step_seconds - extra));
  }
  return text + line("overhead", added);
}

std::string promise(const Summary& summary) {
  std::string text;
  const bool outgrown = summary.budget() && summary.promised_peak > summary.budget();
  if (summary.promised_peak && !outgrown) text += fmt::format("a peak of {}", format_bytes(*summary.promised_peak));
  if (summary.promised_overhead) {
    text += fmt::format("{}an overhead of {}", text.empty() ? "" : " and ", percent(*summary.promised_overhead));
  }
  if (!text.empty()) text = line("", "it promises " + text);
  if (outgrown) {
    text += line("", fmt::format("other bytes have outgrown it: alone it would have a peak of {}",
                                 format_bytes(*summary.promised_peak)));
  }
  return text;
}

std::string proof(const Summary& summary) {
  if (!summary.gap) return "";
  if (*summary.gap <= 0) return line("", "optimal: no plan for its budget costs less");
  return line("", fmt::format("it costs at most {} more than the best possible plan", percent(*summary.gap)));
}

std::string plan(const Summary& summary) {
  const bool has_plan = summary.followed_plan || summary.promised_peak.has_value();
  std::string state = summary.followed_plan ? "followed from the first operator to the last"
                      : has_plan            ? "there is one, the last step did not follow it to the end"
                      : summary.planning    ? "none yet"
                                            : "none";
  if (summary.followed_plan && summary.replays_beside_plan > 0) {
    state += fmt::format("; {} of the replays came beside it", summary.replays_beside_plan);
  }
  if (summary.planning) state += has_plan ? "; a new one is being made" : ", it is being made";
  std::string text = line("plan", state) + promise(summary) + proof(summary);
  if (summary.smallest_feasible) {
    text += line("", fmt::format("the smallest budget with a proven plan is {} ({} bytes)",
                                 format_bytes(*summary.smallest_feasible), *summary.smallest_feasible));
  }
  if (summary.planning_seconds > 0) {
    const double saved = summary.planning_saved_seconds;
    text += line("planning", fmt::format("took {} of CPU time so far{}", cpu_time(summary.planning_seconds),
                                         saved > 0 ? ", and saved about " + cpu_time(saved) : std::string()));
  }
  if (summary.traces > 1) {
    text += line("traces", fmt::format("{}, {} of them with a plan for this budget", summary.traces, summary.plans));
  }
  return text;
}

// The newest first. `sentence` is the member that has it.
template <class Happened>
std::string newest(const char* label, std::int64_t number, const std::vector<Happened>& last,
                   std::string Happened::*sentence) {
  if (number == 0) return "";
  std::string text = line(label, fmt::format("{}{}", number, last.empty() ? "" : ", the newest:"));
  for (std::size_t i = 0; i < std::min(named_of_each, last.size()); ++i) {
    const Happened& one = last[last.size() - 1 - i];
    text += line("", fmt::format("step {}: {}", one.step, one.*sentence));
  }
  return text;
}

std::string divergences(const Summary& summary) {
  return newest("divergences", summary.divergences, summary.last_divergences, &Divergence::why) +
         newest("notes", summary.notes, summary.last_notes, &Note::what);
}

std::string kept(const Summary& summary) {
  std::string text;
  const std::size_t named = std::min(kept_named, summary.kept.size());
  for (std::size_t i = 0; i < named; ++i) {
    const KeptOperator& op = summary.kept[i];
    text += line(i == 0 ? "kept" : "", fmt::format("{} in {} of '{}': {}", format_bytes(op.bytes),
                                                   counted(op.values, "value"), printable(op.op), op.why));
  }
  if (named < summary.kept.size()) {
    Bytes rest = 0;
    for (std::size_t i = named; i < summary.kept.size(); ++i) rest += summary.kept[i].bytes;
    text += line("", fmt::format("and {} more with {}", summary.kept.size() - named, format_bytes(rest)));
  }
  return text;
}

std::string outside_the_budget(const Summary& summary) {
  std::string text;
  if (summary.other_devices > 0) {
    text += line("elsewhere", format_bytes(summary.other_devices) + " on other devices: kept, and not in the budget");
  }
  if (summary.before_meter > 0) {
    text += line(text.empty() ? "elsewhere" : "",
                 format_bytes(summary.before_meter) + " allocated before the meter was there: not in the budget");
  }
  return text;
}

}  // namespace

Bytes Summary::evicted_last_step() const {
  Bytes bytes = 0;
  for (const DeviceSummary& device : devices) bytes += device.evicted_last_step;
  return bytes;
}

double Summary::overhead() const {
  const double extra = replay_seconds + pack_seconds + disk_wait_seconds, rest = step_seconds - extra;
  return extra > 0 && rest > 0 ? extra / rest : 0;
}

std::string to_text(const Summary& summary) {
  std::string text = headline(summary);
  if (summary.steps > 0) {
    text += peaks(summary) + devices(summary) + evicted(summary) + work(summary) + plan(summary) + divergences(summary);
    if (summary.verified > 0) text += line("verified", counted(summary.verified, "value") + ", bit for bit");
    text += kept(summary) + outside_the_budget(summary);
  }
  if (summary.resident > 0) {
    text += line("now", fmt::format("{} live, {} resident in the process", format_bytes(summary.live()),
                                    format_bytes(summary.resident)));
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const Summary& summary) {
  return out << to_text(summary);
}

}  // namespace reprise
