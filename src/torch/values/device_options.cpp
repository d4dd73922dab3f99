#include "torch/values/device_options.h"

#include <algorithm>
#include <string>

#include "torch/memory/counted_device.h"

namespace reprise::internal {
namespace {

constexpr std::size_t most_devices = 64;

std::string written(const DeviceBudget& budget) {
  return "{'" + budget.device + "', " + budget.budget.text() + "}";
}

void check_alone(const SessionOptions& options) {
  const auto has = "[session] option budgets has " + std::to_string(options.budgets.size()) + " devices";
  if (options.budget != Budget()) {
    throw BadOption(has + " and option budget is " + options.budget.text() +
                    ": a session has one or the other. Put the budget into budgets, with its device");
  }
  if (!options.device.empty()) {
    throw BadOption(has + " and option device is '" + options.device +
                    "': a session has one or the other. The first of budgets is the device that plans are made for");
  }
  if (options.budgets.size() > most_devices) {
    throw BadOption(has + ": there must be no more than " + std::to_string(most_devices));
  }
}

void check_entry(const DeviceBudget& budget) {
  const auto has = "[session] option budgets has " + written(budget) + ": ";
  if (budget.device.empty()) throw BadOption(has + "it must name a device, as \"cpu\" or \"cuda:0\"");
  if (budget.budget.bytes() < 0) throw BadOption(has + "the bytes must not be negative");
}

// The CPU has no other names; nothing is the device of the parameters, which is not known before the first step.
bool can_be_accelerator(const std::string& device) {
  return !device.empty() && device != "cpu" && !device.starts_with("cpu:");
}

}  // namespace

void check_form_of_budgets(const SessionOptions& options) {
  if (options.budgets.empty()) return;
  check_alone(options);
  for (const DeviceBudget& budget : options.budgets) check_entry(budget);
}

std::vector<LimitedDevice> devices_of(const SessionOptions& options) {
  CountedDevices& devices = CountedDevices::of_process();
  if (options.budgets.empty()) return {{&devices.at(options.device), options.budget.bytes()}};
  check_form_of_budgets(options);
  std::vector<LimitedDevice> all;
  for (const DeviceBudget& budget : options.budgets) {
    const CountedDevice& device = devices.at(budget.device);
    if (std::any_of(all.begin(), all.end(), [&](const LimitedDevice& one) { return one.device == &device; })) {
      throw BadOption("[session] option budgets has " + written(budget) + ": " + device.name() +
                      " has a budget there already, and must have one only");
    }
    all.push_back({&device, budget.budget.bytes()});
  }
  return all;
}

void check_host(const SessionOptions& options) {
  const std::string is = "[session] option host.bytes is " + std::to_string(options.host.bytes);
  if (options.host.bytes < 0) throw BadOption(is + ": it must not be negative");
  if (options.host.bytes == 0 || can_be_accelerator(options.device) ||
      std::any_of(options.budgets.begin(), options.budgets.end(),
                  [](const DeviceBudget& budget) { return can_be_accelerator(budget.device); })) {
    return;
  }
  throw BadOption(is + ", and no accelerator is named by option device or budgets: it is for values of one");
}

bool names_no_device(const SessionOptions& options) {
  return options.budgets.empty() && options.device.empty();
}

std::vector<Budget> budgets_of(const SessionOptions& options) {
  if (options.budgets.empty()) return {options.budget};
  std::vector<Budget> all;
  for (const DeviceBudget& one : options.budgets) all.push_back(one.budget);
  return all;
}

void check_budget(const CountedDevice& device, const Budget& budget) {
  if (budget.bytes() < 0) {
    throw BadOption("[session] option budget is " + budget.text() + ": it must not be negative");
  }
  if (budget == Budget() || device.is_installed()) return;
  throw BadOption("[session] option budget is " + budget.text() +
                  ", but another library has put its own allocator for " + device.name() +
                  " in front of Reprise's meter: bytes can be neither counted nor limited. Only sessions without a "
                  "budget work beside it");
}

}  // namespace reprise::internal
