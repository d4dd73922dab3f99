// A trace of three moments, a plan for it that evicts a value and replays it, and a plan that Reprise makes itself.
#include <cstdlib>
#include <iostream>

#include "reprise/plan/planner.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

int main() {
  using reprise::Action;

  // "first" makes value 0, "second" makes value 1 from it, and "last" needs both.
  reprise::Trace trace;
  trace.operators = {{.name = "first", .inputs = {}, .outputs = {0}, .cost = 1},
                     {.name = "second", .inputs = {0}, .outputs = {1}, .cost = 1, .workspace = 50},
                     {.name = "last", .inputs = {0, 1}, .outputs = {}, .cost = 1}};
  trace.values = {{.bytes = 100, .maker = 0}, {.bytes = 10, .maker = 1}};
  trace.moments = {{.runs = 0}, {.runs = 1}, {.runs = 2}};
  reprise::check(trace);

  reprise::Plan plan;
  plan.budget = 160;
  plan.actions = {Action::run(0), Action::run(1), Action::drop(0), Action::replay(0), Action::run(2)};

  const reprise::Simulation proof = reprise::simulate(trace, plan);
  std::cout << "by hand: peak " << proof.peak << " bytes, " << proof.replays << " replay\n";
  if (!proof.valid() || proof.peak != 160 || proof.replays != 1) return EXIT_FAILURE;

  const reprise::PlanResult best = reprise::make_plan(trace, {.budget = 160, .moves = 100});
  std::cout << "planned: peak " << best.simulation.peak << " bytes, " << best.simulation.replays << " replays\n";
  return best.has_plan() && best.simulation.peak == 160 && best.simulation.replays == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
