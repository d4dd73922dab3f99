#include "plan/preparation.h"

#include <chrono>

#include "plan/bounds/highs.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/files.h"

namespace reprise::internal {
namespace {

void rehearse_planning() {
  const Trace trace = parse_trace(R"({"cost": [1, 1, 1, 1], "size": [1, 1, 1, 1], "edges": [[0, 1], [1, 2], [0, 3]]})");
  PlanOptions options;
  options.budget = 2;
  options.time_limit = std::chrono::milliseconds(1);
  options.bounds = false;
  (void)make_plan(trace, options);
}

void rehearse_solver() {
  LinearProgram program;
  const int x = program.variable(1, 0, 1);
  program.row({{x, 1}}, 0.5, 1);
  (void)solve(program, {});
}

}  // namespace

void prepare_planning() {
  rehearse_planning();
  if (solver_available()) rehearse_solver();
}

}  // namespace reprise::internal
