// One HTML page about a step: what its bytes are, what the plan does about them, what it costs and what would help.
//
// The page needs nothing else: no network, no other file. It reads on a phone, in the dark and in print, works without
// JavaScript (which only adds details under the pointer), and is at most 1 MiB, whatever the size of the trace.
// The numbers on it are also there for programs, as JSON in the element with the id `reprise-numbers`.
#pragma once

#include <string>

#include "reprise/plan/curve.h"
#include "reprise/report/summary.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// What is pointed to has to live as long as `to_html` runs.
struct PageInput {
  std::string title = "";            // empty: the trace's name
  const Trace* trace = nullptr;      // has to be set
  const Plan* plan = nullptr;        // what is followed; none: the page only shows what keeping everything takes
  const Curve* curve = nullptr;      // none: that section is left out
  const Summary* summary = nullptr;  // of a session that measured it; none: what the interpreter says, and no more
};

// Throws BadInput if there is no trace, or if the plan is not valid for it.
[[nodiscard]] std::string to_html(const PageInput&);

}  // namespace reprise
