// reprise simulate: the proof of a plan.
#include <memory>

#include "command.h"
#include "reprise/report/json.h"
#include "reprise/report/text.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/files.h"

namespace reprise::tools {
namespace {

struct SimulateArguments {
  std::filesystem::path file, plan;
  bool json = false;
};

constexpr const char* simulate_summary = "execute a plan on a trace and check every action";

constexpr const char* simulate_description =
    "Executes the plan action by action and checks the rules: inputs are resident, each moment runs once and in "
    "order, tiers keep to their capacity, live bytes never pass the plan's budget. If the plan breaks a rule, the "
    "first action that does is printed, with its value and the rule. The peak and the cost of a valid plan are the "
    "bytes and the time that it really needs.";

constexpr const char* simulate_footer = R"(Example:
  reprise plan step.json --budget 0.5x --output plan.json
  reprise simulate step.json plan.json

Exit codes:
  0  the plan is valid
  1  the plan breaks a rule
  2  wrong usage, a file that cannot be read
)";

constexpr const char* simulate_json_help =
    "Print the result as one JSON object on one line and nothing else: valid, name, cost, cost_ratio, overhead, "
    "peak_bytes, peak_action, budget_bytes, keep_everything_peak_bytes, replays, puts, gets, replay_cost, "
    "tier_cost, waited (for tiers that work beside the computation), tier_peak_bytes, actions. If the plan is not "
    "valid, also broken {rule, action, value, sentence}, and cost, cost_ratio, overhead, peak_bytes and peak_action "
    "are null.";

int run_simulate(const SimulateArguments& arguments) {
  const Trace trace = load_trace(arguments.file);
  const Plan plan = read_plan(arguments.plan);
  const Simulation simulation = simulate(trace, plan);
  print_out(arguments.json ? json_line(trace, plan, simulation) + "\n" : to_text(trace, plan, simulation));
  return simulation.valid() ? exit_done : exit_refused;
}

}  // namespace

void add_simulate(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "simulate", simulate_summary, simulate_description, simulate_footer);
  const auto arguments = std::make_shared<SimulateArguments>();
  add_trace_argument(*command, arguments->file);
  command->add_option("PLAN", arguments->plan, "A plan, as written by 'reprise plan --output'.")
      ->type_name("")
      ->required();
  add_json_flag(*command, arguments->json, simulate_json_help);
  command->callback([arguments, &run] { run = [arguments] { return run_simulate(*arguments); }; });
}

}  // namespace reprise::tools
