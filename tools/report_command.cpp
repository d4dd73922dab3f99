// reprise report: one page that shows everything.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "command.h"
#include "curve_command.h"
#include "plan_command.h"
#include "reprise/report/memory_picture.h"
#include "reprise/report/page.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "trace/json_file.h"

namespace reprise::tools {
using namespace internal;
namespace {

struct ReportArguments {
  std::filesystem::path file;
  std::optional<std::filesystem::path> plan;
  std::optional<std::string> budget;
  std::optional<std::filesystem::path> output, picture;
  double time_limit = 10;
  std::string title;
  bool no_curve = false;
};

constexpr const char* default_budget = "0.5x";  // where there is no curve with a knee to tell a better one

constexpr const char* report_summary = "write an HTML report: memory over time, the curve, what happens to each tensor";

constexpr const char* report_description =
    "Writes one self-contained page that can be sent to anybody: memory over the step before and after, by kind; "
    "overhead against budget; the values that matter, what happens to them and why; and what would let the budget "
    "go lower.\n"
    "The page shows PLAN, or else a plan for --budget, or else a plan for the knee of the curve, after which more "
    "bytes save little time. Most of the time goes into the curve; with --no-curve and a PLAN nothing is planned at "
    "all.\n"
    "Prints the name of the page. Ctrl-C stops planning and writes the page with the results so far.";

constexpr const char* report_footer = R"(Examples:
  reprise report step.json
        writes step.html, for the knee of the curve
  reprise report step.json --budget 2GiB --title "GPT, 2 GiB" --output page.html
  reprise report step.json plan.json --no-curve
        shows what a plan does, without planning

Exit codes:
  0  there is a page
  1  a defect of Reprise
  2  wrong usage, a file that cannot be read or written, a plan that is not valid for the trace
  3  no plan was found for this budget
)";

Bytes budget_of(const ReportArguments& arguments, const Trace& trace, const std::optional<Curve>& curve) {
  if (!arguments.budget && curve && curve->knee) return curve->points[*curve->knee].budget;
  return parse_budget_option(arguments.budget.value_or(default_budget), trace);
}

// A plan that the curve has for this very budget is as good as it gets in that time.
std::optional<Plan> from_curve(const std::optional<Curve>& curve, Bytes budget) {
  if (!curve) return std::nullopt;
  for (const CurvePoint& point : curve->points) {
    if (point.budget == budget && point.result) return point.result->plan;
  }
  return std::nullopt;
}

// Without one, a sentence that says what would work is in `why`.
std::optional<Plan> plan_of(const ReportArguments& arguments, const Trace& trace, const std::optional<Curve>& curve,
                            std::string& why) {
  if (arguments.plan) return read_plan(*arguments.plan);
  PlanOptions options;
  options.budget = budget_of(arguments, trace, curve);
  if (auto plan = from_curve(curve, options.budget)) return plan;
  options.time_limit = std::chrono::duration<double>(curve ? arguments.time_limit / 4 : arguments.time_limit);
  PlanResult result = plan_with_progress(trace, options);
  if (result.has_plan()) return std::move(result.plan);
  why = fmt::format("no plan was found for a budget of {}", format_bytes(options.budget));
  if (result.smallest_feasible) {
    why += fmt::format("; the smallest for which one was found is {} ({} bytes)",
                       format_bytes(*result.smallest_feasible), *result.smallest_feasible);
  }
  return std::nullopt;
}

int run_report(const ReportArguments& arguments) {
  if (arguments.plan && arguments.budget) throw UsageError("--budget is for making a plan, but PLAN is one already");
  const Trace trace = load_trace(arguments.file);
  const std::filesystem::path output = arguments.output.value_or(arguments.file.stem().string() + ".html");
  const std::filesystem::path plan_file = arguments.plan.value_or(arguments.file);
  require_writable(output, {arguments.file, plan_file});
  if (arguments.picture) require_writable(*arguments.picture, {arguments.file, plan_file, output});
  if (arguments.budget) static_cast<void>(parse_budget_option(*arguments.budget, trace));  // before anybody waits

  std::optional<Curve> curve;
  if (!arguments.no_curve) {
    CurveOptions options;
    options.time_limit = std::chrono::duration<double>(arguments.time_limit * (arguments.plan ? 1 : 0.75));
    curve = curve_with_progress(trace, options);
  }
  std::string why;
  const std::optional<Plan> plan = plan_of(arguments, trace, curve, why);
  if (!plan) {
    fmt::print(stderr, "reprise report: {}\n", why);
    return exit_infeasible;
  }
  const std::string page = to_html({.title = arguments.title,
                                    .trace = &trace,
                                    .plan = &*plan,
                                    .curve = curve ? &*curve : nullptr,
                                    .summary = nullptr});
  save([&] { write_text(output, page); });
  print_out(shown(output) + "\n");
  if (arguments.picture) {
    const std::string& title = arguments.title.empty() ? trace.name : arguments.title;
    save([&] { write_text(*arguments.picture, memory_picture(trace, *plan, title)); });
    print_out(shown(*arguments.picture) + "\n");
  }
  return exit_done;
}

}  // namespace

void add_report(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "report", report_summary, report_description, report_footer);
  const auto arguments = std::make_shared<ReportArguments>();
  add_trace_argument(*command, arguments->file);
  command
      ->add_option("PLAN", arguments->plan,
                   "A plan, as written by 'reprise plan --output'. Default: the command makes one.")
      ->type_name("");
  command
      ->add_option("--budget", arguments->budget,
                   "The budget to plan for: a number of bytes (1500000), with a unit (512MiB, 1.5GB), or a multiple of "
                   "the peak of keeping everything (0.8x). Default: the knee of the curve; 0.5x without one.")
      ->type_name("BYTES");
  command
      ->add_option("--output", arguments->output,
                   "Write the page to this file. Default: the name of the trace's file with .html, in the current "
                   "folder.")
      ->type_name("FILE");
  add_time_limit(*command, arguments->time_limit,
                 "How long to plan, in seconds, for the curve and the plan together. More time gives a lower curve and "
                 "sharper bounds. Default: 10.");
  command->add_option("--title", arguments->title, "The title of the page. Default: the name of the trace.")
      ->type_name("TEXT");
  command
      ->add_option("--picture", arguments->picture,
                   "Also write memory over the step, before and after, to this file, as one SVG picture for a "
                   "document.")
      ->type_name("FILE");
  command->add_flag("--no-curve", arguments->no_curve,
                    "Leave out overhead against budget, which takes most of the time.");
  command->callback([arguments, &run] { run = [arguments] { return run_report(*arguments); }; });
}

}  // namespace reprise::tools
