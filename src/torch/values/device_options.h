// The devices that the options of a session name, and the budgets they have there.
#pragma once

#include <vector>

#include "reprise/torch/session.h"
#include "torch/memory/counted_device.h"

namespace reprise::internal {

// A device of a session, and the most bytes that may be live there while a step of it is open.
struct LimitedDevice {
  const CountedDevice* device = nullptr;
  Bytes budget = no_limit;  // also while a share is being measured
};

// At least one, in the order of the options; without any, the CPU. Throws BadOption if the options contradict each
// other, or if a device does not exist or cannot be counted. Not under the arbiter's lock.
[[nodiscard]] std::vector<LimitedDevice> devices_of(const SessionOptions&);

// What of that shows without looking for the devices. Throws BadOption.
void check_form_of_budgets(const SessionOptions&);

// Throws BadOption if `host` is negative, or if none of the devices that are named can be an accelerator.
void check_host(const SessionOptions&);

// Whether it is left to the first step to find the device where the parameters are.
[[nodiscard]] bool names_no_device(const SessionOptions&);

// Throws BadOption if this cannot be a budget, or cannot be held at this device.
void check_budget(const CountedDevice&, const Budget&);

// Returns the budgets as they were written, in the order of `devices_of`.
[[nodiscard]] std::vector<Budget> budgets_of(const SessionOptions&);

}  // namespace reprise::internal
