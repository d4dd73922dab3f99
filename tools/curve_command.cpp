// reprise curve: overhead against budget.
#include "curve_command.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "command.h"
#include "interrupt.h"
#include "progress_bar.h"
#include "reprise/report/curve_views.h"
#include "reprise/report/json.h"
#include "trace/json_file.h"

namespace reprise::tools {
using namespace internal;
namespace {

struct CurveArguments {
  std::filesystem::path file;
  int points = CurveOptions().points;
  double time_limit = CurveOptions().time_limit.count();
  std::optional<std::filesystem::path> output;
  bool json = false;
};

constexpr const char* curve_summary = "show the overhead against the budget, to help choose one";

constexpr const char* curve_description =
    "Plans for several budgets, from the smallest for which a plan is found to the peak of keeping everything. "
    "Prints, for each budget, the cost of its plan and the least cost of any plan, and ends with the knee, the "
    "budget after which more bytes save little time.\n"
    "A quarter of the time goes into finding the smallest budget, the rest into the plans; easy plans leave their "
    "time to the hard ones. Ctrl-C stops with the results so far; a second Ctrl-C ends the program.";

constexpr const char* curve_footer = R"(Examples:
  reprise curve step.json
  reprise curve step.json --points 24 --time-limit 120 --output curve.svg

Exit codes:
  0  there is a curve
  1  a defect of Reprise
  2  wrong usage, a file that cannot be read or written
)";

constexpr const char* curve_json_help =
    "Print the result as one JSON object on one line and nothing else: name, points (budget_bytes, share, status, "
    "cost, cost_ratio, overhead, peak_bytes, lower_bound, lower_bound_ratio, gap, replays, puts, gets, seconds of "
    "each), knee (a position in points, or null), knee_bytes, smallest_feasible_bytes, floor_bytes, "
    "keep_everything_peak_bytes, plain_cost, advice, seconds, cancelled.";

int run_curve(const CurveArguments& arguments) {
  const Trace trace = load_trace(arguments.file);
  CurveOptions options;
  options.points = arguments.points;
  options.time_limit = std::chrono::duration<double>(arguments.time_limit);
  if (arguments.output) require_writable(*arguments.output, {arguments.file});

  const Curve curve = curve_with_progress(trace, options);
  if (arguments.output) save([&] { write_text(*arguments.output, to_svg(curve, trace.name)); });
  std::string text = arguments.json ? json_line(trace, curve) + "\n" : curve_text(curve);
  if (arguments.output && !arguments.json) text += fmt::format("The picture is in {}.\n", shown(*arguments.output));
  print_out(text);
  return exit_done;
}

}  // namespace

Curve curve_with_progress(const Trace& trace, CurveOptions options) {
  options.cancel = cancel_on_interrupt();
  ProgressBar bar(options.time_limit.count(), options.cancel);
  options.progress = [&bar, points = options.points](double share, int done) {
    bar.update(share, done == 0 ? "the smallest budget" : fmt::format("{} of {} budgets", done, points));
  };
  return make_curve(trace, options);
}

std::string curve_text(const Curve& curve) {
  std::string text = to_text(curve) + "\n" + advice(curve) + "\n";
  if (curve.cancelled) text += "This run was stopped early; a full run gives a lower curve.\n";
  return text;
}

void add_curve(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "curve", curve_summary, curve_description, curve_footer);
  const auto arguments = std::make_shared<CurveArguments>();
  add_trace_argument(*command, arguments->file);
  command->add_option("--points", arguments->points, "The number of budgets, from 2 to 1000. Default: 12.")
      ->type_name("N")
      ->check(whole_number(2, 1000));
  add_time_limit(
      *command, arguments->time_limit,
      "How long to plan, in seconds, for all budgets together. More time gives a lower curve and sharper bounds. "
      "Default: 30.");
  command->add_option("--output", arguments->output, "Draw the curve to this file, as SVG.")->type_name("FILE");
  add_json_flag(*command, arguments->json, curve_json_help);
  command->callback([arguments, &run] { run = [arguments] { return run_curve(*arguments); }; });
}

}  // namespace reprise::tools
