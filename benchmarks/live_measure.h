// The measurements of ./bench live: a whole run, the smallest budget, and steps of one side alone.
#pragma once

#include "live_report.h"
#include "live_settings.h"
#include "reprise/torch/errors.h"

namespace reprise::benchmarks {

// What is known before the first Reprise step.
struct Ground {
  Bytes level = 0;       // live at the start of a step
  Bytes plain_peak = 0;  // above the level
  Bytes budget = 0;      // above the level
};

// The budget cannot be kept. Carries what was known by then.
struct NotKept : BudgetError {
  NotKept(const BudgetError& error, const Ground& known) : BudgetError(error), ground(known) {}
  Ground ground;
};

// Throws NotKept.
[[nodiscard]] Report measure(const Settings&);

[[nodiscard]] SmallestReport find_smallest(const Settings&);

// --only: throws NotKept.
void run_only(const Settings&);

}  // namespace reprise::benchmarks
