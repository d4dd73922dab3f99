#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "reprise/report/summary.h"
#include "reprise/trace/amount.h"
#include "trace/printable.h"

namespace reprise::internal {

std::string percent(double share) {
  const double value = 100 * share;
  if (value <= 0) return "0 %";
  if (value < 0.1) return "<0.1 %";
  return value < 9.95 ? fmt::format("{:.1f} %", value) : fmt::format("{:.0f} %", value);
}

std::string small_percent(double share) {
  const double value = 100 * share;
  if (value > 0 && value < 0.001) return "<0.001 %";
  return value > 0 && value < 9.95 ? fmt::format("{:.2g} %", value) : percent(share);
}

std::string overhead(double cost_ratio) {
  if (cost_ratio <= 1) return "none";
  // With enough decimals that a small overhead does not look like none.
  const int decimals = cost_ratio < 1.001 ? 6 : cost_ratio < 2 ? 4 : 2;
  return fmt::format("{}: it costs {:.{}f} times as much as running everything once", percent(cost_ratio - 1),
                     cost_ratio, decimals);
}

std::string share_of(Bytes part, Bytes everything) {
  if (everything <= 0) return "1.00";
  return fmt::format("{:.2f}", static_cast<double>(part) / static_cast<double>(everything));
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string count(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string duration(double seconds) {
  if (seconds < 0.05) return "less than 0.1 s";
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long>(std::lround(seconds));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string what_was_added(const Summary& summary) {
  std::vector<std::string> parts;
  if (summary.replay_seconds > 0) parts.emplace_back("replaying");
  if (summary.pack_seconds > 0) parts.emplace_back("packing");
  if (summary.disk_wait_seconds > 0) parts.emplace_back("waiting for the disk");
  if (parts.empty()) return "nothing";
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 < parts.size() ? ", " : " and ") + parts[i];
  return text;
}

std::string bar(double share, int width) {
  static constexpr std::array<std::string_view, 8> parts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) return "";
  const long eighths = std::max(1L, std::lround(std::min(share, 1.0) * width * 8));
  std::string text;
  for (long i = 0; i < eighths / 8; ++i) text += "█";
  return text += parts[static_cast<std::size_t>(eighths % 8)];
}

std::string line(std::string_view label, std::string_view text) {
  return fmt::format("  {:<12}{}\n", label, printable_line(text));
}

std::string name_of(const Trace& trace) {
  return trace.name.empty() ? "the trace" : printable(trace.name);
}

std::string describe_value(const Trace& trace, Id value) {
  const auto& maker = trace.values[value].maker;
  const std::string bytes = format_bytes(trace.values[value].bytes);
  if (!maker) return fmt::format("value {} from outside ({})", value, bytes);
  const std::string& name = trace.operators[*maker].name;
  if (name.empty()) return fmt::format("value {} of operator {} ({})", value, *maker, bytes);
  return fmt::format("value {} of '{}' ({})", value, printable(name), bytes);
}

std::string describe_moment(const Trace& trace, Id moment) {
  const std::string& label = trace.label(moment);
  return label.empty() ? fmt::format("moment {}", moment) : fmt::format("moment {} '{}'", moment, printable(label));
}

std::string maker_of(const Trace& trace, Id value, std::size_t width) {
  const auto& maker = trace.values[value].maker;
  if (!maker) return "(outside)";
  std::string name = printable(trace.operators[*maker].name);
  if (name.empty()) return fmt::format("operator {}", *maker);
  if (name.size() <= width) return name;
  std::size_t length = width - 3;
  while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;  // not inside a character
  return name.substr(0, length) + "...";
}

}  // namespace reprise::internal
