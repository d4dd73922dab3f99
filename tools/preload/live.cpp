// The part of the preloaded library that knows LibTorch. Its static initialisers put meter and engine in place; this
// reads the environment, begins to watch, and tells at the end of the program what came of it.
#include <ATen/Version.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "plan/highs.h"
#include "preload/environment.h"
#include "preload/untouched.h"
#include "reprise/plan/curve.h"
#include "reprise/report/page.h"
#include "reprise/trace/files.h"
#include "torch/automatic.h"

namespace reprise::preload {
namespace {

Settings settings;  // from the environment
pid_t process = 0;  // that began; a fork of it has nothing to tell

void say(const std::string& text) {
  std::fprintf(stderr, "reprise: %s\n", text.c_str());
}

// ---- at the end ----------------------------------------------------------------------------------------------------

void write_report(const Trace& trace, const std::optional<Plan>& plan, const Summary& summary) {
  CurveOptions options;
  options.time_limit = std::chrono::seconds(5);
  const Curve curve = make_curve(trace, options);
  PageInput page;
  page.title = "Reprise";
  page.trace = &trace;
  page.plan = plan ? &*plan : nullptr;
  page.curve = &curve;
  page.summary = &summary;
  std::ofstream file(settings.report, std::ios::binary);
  file << to_html(page);
  if (!file.flush()) throw std::runtime_error(settings.report.string() + ": cannot be written");
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
    if (const auto outcome = automatic::outcome()) tell(*outcome);
  } catch (const std::exception& error) {
    say(error.what());
  }
}

// ---- at the beginning ----------------------------------------------------------------------------------------------

// What is loaded later is gone earlier, so whatever the end needs is loaded before the end is announced.
void on_first_thread() {
  if (!settings.report.empty()) (void)solver_available();
  std::atexit(at_end);
}

// Before everything else in this library, so that nothing of it meets a LibTorch with other insides.
[[gnu::constructor(101)]] void check_version() {
  const std::string configuration = at::show_config();
  const std::string mark = "TORCH_VERSION=";
  const std::size_t at = configuration.find(mark);
  std::string version = "unknown";
  if (at != std::string::npos) {
    const std::size_t begin = at + mark.size();
    version = configuration.substr(begin, configuration.find_first_of(", \n", begin) - begin);
  }
  if (version == TORCH_VERSION) return;
  const std::string reason = "it is version " + version + ", and Reprise was built for " TORCH_VERSION;
  untouched_or_not_at_all("this program's LibTorch is not one that this Reprise was built for", reason.c_str());
}

}  // namespace
}  // namespace reprise::preload

// Called by preload.cpp as soon as this library is loaded, when meter and engine are in place.
extern "C" [[gnu::visibility("default")]] void reprise_begin() try {
  using namespace reprise::preload;
  process = getpid();
  settings = read_environment(std::getenv);
  const reprise::Session probe(settings.options);  // throws what a session would complain about
  reprise::automatic::begin(settings.options, on_first_thread);
} catch (const std::exception& error) {
  reprise::untouched_or_not_at_all("this program cannot be put under a budget", error.what());
}
