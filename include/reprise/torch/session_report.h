// Writes what a session has found out as one HTML page.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include "reprise/export.h"
#include "reprise/torch/session.h"

namespace reprise {

struct ReportOptions {
  std::string title = "A training step";
  // The time for the curve of overhead against budget. More time: a lower curve. Zero: the page has no curve.
  std::chrono::duration<double> time_limit = std::chrono::seconds(6);
  // The curve ends soon, with the points that are there, when any thread sets this to true.
  const std::atomic<bool>* cancel = nullptr;
};

// Writes a page (reprise/report/page.h) about the last complete step of the session: memory over time, overhead against
// budget, and what was done to each tensor. Waits for the plans of the session. Throws BadInput if no step was
// recorded from its first operator to the end of backward yet, and Error if the file cannot be written.
REPRISE_EXPORT void write_report(const std::filesystem::path&, Session&, const ReportOptions& = {});

}  // namespace reprise
