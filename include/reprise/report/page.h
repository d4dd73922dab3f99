// Writes one HTML page about a step: its bytes by kind, what the plan does about them, what it costs and what would
// help.
//
// The page is self-contained: it needs no network and no other file. It is readable on a phone, in dark mode and in
// print, works without JavaScript (which only adds details under the pointer), and is at most 1 MiB, whatever the size
// of the trace. Its numbers are also in it as JSON for programs, in the element with the id `reprise-numbers`.
#pragma once

#include <filesystem>
#include <string>

#include "reprise/export.h"
#include "reprise/plan/curve.h"
#include "reprise/report/summary.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// The input of a page. The objects that it points to have to live as long as `to_html` runs.
struct PageInput {
  std::string title = "";            // empty: the trace's name
  const Trace* trace = nullptr;      // has to be set
  const Plan* plan = nullptr;        // the plan that is followed; null: the page only shows keeping everything
  const Curve* curve = nullptr;      // null: that section is left out
  const Summary* summary = nullptr;  // of a session that measured the step; null: only the interpreter's numbers
};

// Returns the page. Throws BadInput if there is no trace, or if the plan is not valid for it.
[[nodiscard]] REPRISE_EXPORT std::string to_html(const PageInput&);

// Writes the page into a file. Throws likewise, and Error if the file cannot be written.
REPRISE_EXPORT void write_page(const std::filesystem::path&, const PageInput&);

}  // namespace reprise
