// A file that is read as a plan: refused, or written and read again as it was; and the interpreter says what a plan
// costs, or which rule it breaks.
#include "fuzz.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "support/small_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise;
  static const Trace trace = [] {
    testing::SmallTrace small;
    const Id input = small.outside(8);
    small.run({input}, {16, 4});
    small.run({input + 1}, {16}, 2, 3);
    small.run({input + 2, input + 3}, {8});
    small.event({input + 1, input + 4});
    return small.trace;
  }();
  try {
    const Plan plan = parse_plan({reinterpret_cast<const char*>(data), size});
    fuzz::require(parse_plan(to_json(plan)) == plan, "a plan is written and read as it was");
    const Simulation simulation = simulate(trace, plan, {.record_residences = true, .record_times = true});
    fuzz::require(simulation.broken || simulation.peak <= plan.budget, "a valid plan keeps its budget");
    fuzz::require(!simulation.broken || !simulation.broken->sentence.empty(), "a broken rule has a sentence");
  } catch (const BadInput&) {
  }
  return 0;
}
