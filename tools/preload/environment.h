// What a preloaded program is asked to do, from its environment. `reprise run` sets the same variables.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "reprise/torch/session.h"

namespace reprise::preload {

enum class SummaryForm { text, json, none };

struct Settings {
  SessionOptions options;  // REPRISE_BUDGET, _DEVICE, _BUDGETS, _DISK, _DISK_BYTES, _HOST, _PLANS, _PLANNING_SHARE,
                           // _PLANNING_TIME, _VERIFY, _PACK
  SummaryForm summary = SummaryForm::text;  // REPRISE_SUMMARY: how it is printed on stderr in the end
  std::filesystem::path report;             // REPRISE_REPORT: the HTML page; empty: none
  std::filesystem::path trace;              // REPRISE_TRACE: the trace of the last step; empty: not saved
};

// `variable` gives the value of an environment variable, nullptr if it is not set; empty is as if it were not set.
// Throws BadOption that names the variable, its value and what it may be.
[[nodiscard]] Settings read_environment(const std::function<const char*(const char*)>& variable);

// %p in the name becomes the number of the process, so that several of them do not write the same file.
[[nodiscard]] std::filesystem::path with_process(const std::string& name, int process);

}  // namespace reprise::preload
