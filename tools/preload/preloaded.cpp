// The part of the preloaded library that knows LibTorch. Its static initialisers put meter and engine in place; this
// reads the environment, begins to watch, and tells at the end of the program what came of it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "preload/environment.h"
#include "preload/untouched.h"
#include "reprise/plan/curve.h"
#include "reprise/plan/planner.h"
#include "reprise/report/page.h"
#include "reprise/trace/files.h"
#include "torch/hooks/automatic.h"
#include "torch/libtorch/version_check.h"
#include "trace/printable.h"

namespace reprise::preload {
using namespace internal;
namespace {

RunSettings settings;  // from the environment
pid_t process = 0;     // that began; a fork of it has nothing to tell

void say(const std::string& text) {
  std::fprintf(stderr, "reprise: %s\n", printable_line(text).c_str());
}

// ---- at the end ----------------------------------------------------------------------------------------------------

// The solver behind the best lower bounds is not used: what it needs may be gone by now.
Curve curve_of(const Trace& trace) {
  CurveOptions options;
  options.time_limit = std::chrono::seconds(5);
  options.bounds = false;
  return make_curve(trace, options);
}

// For a program that ended before it had one.
std::optional<Plan> plan_for(const Trace& trace, Bytes budget) {
  PlanOptions options;
  options.budget = budget;
  options.time_limit = settings.session.planning_time;
  options.bounds = false;
  const PlanResult result = make_plan(trace, options);
  return result.has_plan() ? std::optional(result.plan) : std::nullopt;
}

PageInput page_of(const Trace& trace, const std::optional<Plan>& plan, const Curve& curve, const Summary& summary) {
  return {.title = "Reprise", .trace = &trace, .plan = plan ? &*plan : nullptr, .curve = &curve, .summary = &summary};
}

// What is made first is destroyed last: tables that are only made when a report is written have to be there before the
// end of the program is announced to us.
void rehearse_report() {
  const Trace trace = parse_trace(R"({"cost": [1, 1], "size": [1, 1], "edges": [[0, 1]]})");
  const Plan everything = keep_everything(trace);
  (void)to_html(page_of(trace, everything, curve_of(trace), Summary{}));
}

void write_report(const Trace& trace, std::optional<Plan> plan, const Summary& summary) {
  if (!plan && summary.budget()) plan = plan_for(trace, *summary.budget());
  write_page(settings.report, page_of(trace, plan, curve_of(trace), summary));
  say("report: " + settings.report.string());
}

void tell(const automatic::Outcome& outcome) {
  const auto& [summary, trace, plan] = outcome;
  if (settings.summary == SummaryForm::text) std::fprintf(stderr, "\n%s", to_text(summary).c_str());
  if (settings.summary == SummaryForm::json) std::fprintf(stderr, "%s\n", json_line(summary).c_str());
  if (settings.report.empty() && settings.trace.empty()) return;
  if (!trace) {
    say("no step was seen from its first operator to the end of backward: there is no trace, and no report");
    return;
  }
  if (!settings.trace.empty()) {
    write_trace(settings.trace, *trace);
    say("trace: " + settings.trace.string());
  }
  if (!settings.report.empty()) write_report(*trace, plan, summary);
}

void at_end() {
  if (getpid() != process) return;
  try {
    if (const auto outcome = automatic::outcome()) {
      tell(*outcome);
    } else if (settings.summary == SummaryForm::text) {
      say("autograd saved nothing in this program: nothing was recorded, and no budget was in force");
    }
  } catch (const std::exception& error) {
    say(error.what());
  }
}

// ---- at the beginning ----------------------------------------------------------------------------------------------

// Before everything else in this library, so that nothing of it meets a LibTorch with other insides.
[[gnu::constructor(101)]] void check_version() {
  if (runs_as_compiled()) return;
  const std::string reason = "it is " + running_libtorch() + ", and Reprise was built for " + compiled_libtorch();
  untouched_or_not_at_all("this program's LibTorch is not one that this Reprise was built for", reason.c_str());
}

}  // namespace
}  // namespace reprise::preload

// Called by preload.cpp as soon as this library is loaded, when meter and engine are in place.
extern "C" [[gnu::visibility("default")]] void reprise_begin() try {
  using namespace reprise::preload;
  process = getpid();
  settings = read_environment();
  reprise::internal::automatic::begin(settings.session);
  if (!settings.report.empty()) rehearse_report();
  std::atexit(at_end);
} catch (const std::exception& error) {
  reprise::untouched_or_not_at_all("this program cannot be put under a budget",
                                   reprise::internal::printable_line(error.what()).c_str());
}
