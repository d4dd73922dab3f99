// reprise inspect: what is in a trace.
#include <memory>
#include <optional>

#include "command.h"
#include "reprise/plan/planner.h"
#include "reprise/report/inspection.h"
#include "reprise/report/json.h"
#include "reprise/report/perfetto.h"
#include "reprise/trace/files.h"
#include "trace/json_file.h"

namespace reprise::tools {
using namespace internal;
namespace {

struct InspectArguments {
  std::filesystem::path file;
  std::optional<std::filesystem::path> plan, perfetto;
  bool json = false;
};

constexpr const char* inspect_summary = "show what is in a trace: counts, bytes, what sets the peak, what to evict";

constexpr const char* inspect_description =
    "Counts operators, moments, events and values. Names the moment at which keeping everything has most bytes live "
    "and the largest values there, the floor that no plan can go below and what sets it, and the values that cannot "
    "be recomputed. "
    "Lists the ten values that are worth most to evict: many bytes, unused for long, cheap to recompute.\n"
    "With --perfetto, also writes the step as a timeline for ui.perfetto.dev or chrome://tracing: operators, "
    "replays, packing, live bytes and the budget. The timeline is that of PLAN, or else of keeping everything.";

constexpr const char* inspect_footer = R"(Examples:
  reprise inspect step.json
  reprise inspect step.json --perfetto before.json
  reprise inspect step.json plan.json --perfetto after.json
        the timeline of a plan; open it at ui.perfetto.dev

Exit codes:
  0  done
  2  wrong usage, a file that cannot be read or written, a plan that is not valid for the trace
)";

constexpr const char* inspect_json_help =
    "Print the result as one JSON object on one line and nothing else: name, operators, moments, events, values, "
    "outside_values, value_bytes, outside_bytes, largest_other_bytes, keep_everything_peak_bytes, floor_bytes, "
    "floor {moment, name, bytes, proven, values, needed_bytes, made_bytes, workspace_bytes, held_bytes, fixed_bytes, "
    "other_bytes}, cost, event_cost, tiers, peak {moment, name, bytes, other_bytes, workspace_bytes, values}, "
    "worth_most "
    "[{value, bytes, maker, from_moment, until_moment, unused_cost, recompute_cost, replays, at_peak}, ...], fixed "
    "{count, bytes, values}.";

void write_timeline(const InspectArguments& arguments, const Trace& trace) {
  const Plan plan = arguments.plan ? read_plan(*arguments.plan) : keep_everything(trace);
  const std::string timeline = to_perfetto(trace, plan);
  save([&] { write_text(*arguments.perfetto, timeline); });
}

int run_inspect(const InspectArguments& arguments) {
  if (arguments.plan && !arguments.perfetto) throw UsageError("PLAN is for --perfetto FILE, which is missing");
  const Trace trace = load_trace(arguments.file);
  if (arguments.perfetto) {
    require_writable(*arguments.perfetto, {arguments.file, arguments.plan.value_or(arguments.file)});
    write_timeline(arguments, trace);
  }
  const Inspection inspection = inspect(trace);
  print_out(arguments.json ? json_line(trace, inspection) + "\n" : to_text(trace, inspection));
  return exit_done;
}

}  // namespace

void add_inspect(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "inspect", inspect_summary, inspect_description, inspect_footer);
  const auto arguments = std::make_shared<InspectArguments>();
  add_trace_argument(*command, arguments->file);
  command->add_option("PLAN", arguments->plan, "The plan that --perfetto shows. Default: keeping everything.")
      ->type_name("");
  command
      ->add_option("--perfetto", arguments->perfetto,
                   "Write a timeline to this file, in the Trace Event Format (JSON). One unit of cost is one "
                   "microsecond in it.")
      ->type_name("FILE");
  add_json_flag(*command, arguments->json, inspect_json_help);
  command->callback([arguments, &run] { run = [arguments] { return run_inspect(*arguments); }; });
}

}  // namespace reprise::tools
