// reprise inspect: what is in a trace.
#include <memory>

#include "command.h"
#include "reprise/report/inspection.h"
#include "reprise/report/json.h"

namespace reprise::tools {
namespace {

struct InspectArguments {
  std::filesystem::path file;
  bool json = false;
};

constexpr const char* summary = "show what is in a trace: counts, bytes, who sets the peak, what to forget";

constexpr const char* description =
    "Counts operators, moments, events and values; names the moment at which keeping everything has most bytes live "
    "and the "
    "largest values there, the floor that no plan can go below, and what cannot be rebuilt; and lists the ten values "
    "that are "
    "worth most to forget: many bytes, unused for long, rebuilt for little.";

constexpr const char* footer = R"(Example:
  reprise inspect step.json

Exit codes:
  0  done
  2  wrong usage, a file that cannot be read
)";

constexpr const char* json_help =
    "Print the result as one JSON object on one line and nothing else: name, operators, moments, events, values, "
    "outside_values, value_bytes, outside_bytes, largest_other_bytes, keep_everything_peak_bytes, floor_bytes, floor, "
    "cost, "
    "event_cost, tiers, peak {moment, name, bytes, other_bytes, workspace_bytes, values}, worth_most [{value, bytes, "
    "maker, "
    "from_moment, until_moment, unused_cost, rebuild_cost, replays, at_peak}, ...], fixed {count, bytes, values}.";

int run_inspect(const InspectArguments& arguments) {
  const Trace trace = load_trace(arguments.file);
  const Inspection inspection = inspect(trace);
  print_out(arguments.json ? json_line(trace, inspection) + "\n" : to_text(trace, inspection));
  return exit_done;
}

}  // namespace

void add_inspect(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "inspect", summary, description, footer);
  const auto arguments = std::make_shared<InspectArguments>();
  add_trace_argument(*command, arguments->file);
  add_json_flag(*command, arguments->json, json_help);
  command->callback([arguments, &run] { run = [arguments] { return run_inspect(*arguments); }; });
}

}  // namespace reprise::tools
