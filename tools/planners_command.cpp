// reprise planners: who can plan.
#include <fmt/format.h>

#include "command.h"
#include "reprise/plan/planner.h"

namespace reprise::tools {
namespace {

constexpr const char* planners_footer = R"(Example:
  reprise plan step.json --budget 0.5x --planner chen-sqrt
)";

int run_planners() {
  std::string text;
  for (const PlannerInfo& planner : planners()) text += fmt::format("{:<16} {}\n", planner.name, planner.summary);
  print_out(text);
  return exit_done;
}

}  // namespace

void add_planners(CLI::App& app, Run& run) {
  CLI::App* const command =
      add_command(app, "planners", "list the planners that 'reprise plan --planner' knows",
                  "Prints one line for each planner: its name and what it does.", planners_footer);
  command->callback([&run] { run = run_planners; });
}

}  // namespace reprise::tools
