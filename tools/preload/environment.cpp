#include "preload/environment.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "device_budgets.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"

namespace reprise::preload {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& value, const std::string& expected) {
  throw BadOption(std::string(name) + " is '" + value + "': " + expected);
}

// ---- one variable ----

Bytes bytes(const char* name, const std::string& value) try {
  return parse_bytes(value);
} catch (const BadOption& error) {
  refuse(name, value, error.what());
}

std::vector<DeviceBudget> budgets(const char* name, const std::string& value) try {
  std::vector<DeviceBudget> all;
  for (const auto& [device, bytes] : tools::parse_device_budgets(value)) all.push_back({device, bytes});
  return all;
} catch (const BadOption& error) {
  refuse(name, value, error.what());
}

// None: it is no number from 0 to this.
std::optional<double> number(const std::string& value, double largest) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !(number >= 0 && number <= largest)) return {};
  return number;
}

double planning_share(const char* name, const std::string& value) {
  if (const auto share = number(value, std::numeric_limits<double>::infinity())) return *share;
  refuse(name, value, "it must be a number that is not negative");
}

std::chrono::milliseconds planning_time(const char* name, const std::string& value) {
  if (const auto seconds = number(value, 1e6)) return std::chrono::milliseconds(std::llround(*seconds * 1000));
  refuse(name, value, "it must be a number of seconds from 0 to 1000000");
}

Verify verify(const char* name, const std::string& value) {
  if (value == "never") return Verify::never;
  if (value == "first-time") return Verify::first_time;
  if (value == "always") return Verify::always;
  refuse(name, value, "it must be never, first-time or always");
}

bool on_or_off(const char* name, const std::string& value) {
  if (value == "on") return true;
  if (value == "off") return false;
  refuse(name, value, "it must be on or off");
}

SummaryForm summary(const char* name, const std::string& value) {
  if (value == "text") return SummaryForm::text;
  if (value == "json") return SummaryForm::json;
  if (value == "none") return SummaryForm::none;
  refuse(name, value, "it must be text, json or none");
}

}  // namespace

std::filesystem::path with_process(const std::string& name, int process) {
  std::string result = name;
  for (std::size_t at = result.find("%p"); at != std::string::npos; at = result.find("%p", at)) {
    result.replace(at, 2, std::to_string(process));
  }
  return result;
}

Settings read_environment(const std::function<const char*(const char*)>& variable) {
  Settings settings;
  settings.options.name = "reprise";
  const auto read = [&](const char* name, const auto& use) {
    const char* const value = variable(name);
    if (value && *value) use(name, std::string(value));
  };
  read("REPRISE_BUDGET", [&](auto name, const auto& value) { settings.options.budget = bytes(name, value); });
  read("REPRISE_DEVICE", [&](auto, const auto& value) { settings.options.device = value; });
  read("REPRISE_BUDGETS", [&](auto name, const auto& value) { settings.options.budgets = budgets(name, value); });
  read("REPRISE_DISK", [&](auto, const auto& value) { settings.options.disk.folder = value; });
  read("REPRISE_DISK_BYTES", [&](auto name, const auto& value) { settings.options.disk.bytes = bytes(name, value); });
  read("REPRISE_HOST", [&](auto name, const auto& value) { settings.options.host.bytes = bytes(name, value); });
  read("REPRISE_PLANS", [&](auto, const auto& value) { settings.options.plans = value; });
  read("REPRISE_PLANNING_SHARE",
       [&](auto name, const auto& value) { settings.options.planning_share = planning_share(name, value); });
  read("REPRISE_PLANNING_TIME",
       [&](auto name, const auto& value) { settings.options.planning_time = planning_time(name, value); });
  read("REPRISE_VERIFY", [&](auto name, const auto& value) { settings.options.verify = verify(name, value); });
  read("REPRISE_PACK", [&](auto name, const auto& value) { settings.options.pack = on_or_off(name, value); });
  read("REPRISE_SUMMARY", [&](auto name, const auto& value) { settings.summary = summary(name, value); });
  read("REPRISE_REPORT", [&](auto, const auto& value) { settings.report = with_process(value, getpid()); });
  read("REPRISE_TRACE", [&](auto, const auto& value) { settings.trace = with_process(value, getpid()); });
  return settings;
}

}  // namespace reprise::preload
