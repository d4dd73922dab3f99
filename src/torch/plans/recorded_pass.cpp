#include "torch/plans/recorded_pass.h"

#include <algorithm>
#include <utility>

#include "torch/libtorch/bytes_of.h"

namespace reprise::internal {
namespace {

constexpr int steps_in_a_row = 16;      // after so many, what was seen before them counts no more
constexpr Bytes much_of_a_budget = 16;  // a part of it that is worth another plan if it is free

void raise(std::vector<OtherBytes>& most, const std::vector<OtherBytes>& seen) {
  most.resize(seen.size());
  for (std::size_t m = 0; m < seen.size(); ++m) {
    most[m].between = std::max(most[m].between, seen[m].between);
    most[m].within = std::max(most[m].within, seen[m].within);
  }
}

}  // namespace

Bytes RecordedPass::bytes() const {
  Bytes bytes = recipes->bytes() + seen.bytes() + bytes_of(costs, other, lately_, common);
  if (executable) bytes += executable->bytes();
  if (plan) bytes += bytes_of(plan->actions);
  return bytes;
}

double RecordedPass::seconds() const {
  double microseconds = 0;
  for (const ObservedMoment& moment : seen.moments) microseconds += static_cast<double>(moment.cost);
  return 1e-6 * microseconds;
}

// The first time, costs are those of the host, which only began the work.
void RecordedPass::take_late_costs() {
  for (; !late.empty(); late.erase(late.begin())) {
    const auto& told = late.front()->told();
    if (!told) return;
    for (const auto& [m, cost] : *told) {
      if (static_cast<std::size_t>(m) >= seen.moments.size()) continue;
      ObservedMoment& moment = seen.moments[m];
      moment.cost = measured == 0 ? cost : std::min(moment.cost, cost);
      if (moment.op != no_operator) costs[moment.op] = moment.cost;
    }
    ++measured;
  }
}

void RecordedPass::see_other(const std::vector<OtherBytes>& of_step) {
  if (of_step.size() != other.size()) return;
  raise(other, of_step);
  raise(lately_, of_step);
  if (++steps_lately_ == steps_in_a_row) {
    other = std::exchange(lately_, {});
    steps_lately_ = 0;
  }
  spare = spare_now();
}

Bytes RecordedPass::spare_now() const {
  return executable ? executable->spare(other) : 0;
}

void RecordedPass::use(std::shared_ptr<const ExecutablePlan> with, Plan its_plan) {
  executable = std::move(with);
  plan = std::move(its_plan);
  spare = spare_when_planned = spare_now();
}

void RecordedPass::drop_plan() {
  executable.reset();
  plan.reset();
  given = false;
}

bool RecordedPass::outgrew_plan() const {
  if (!executable) return false;
  if (spare < 0) return true;
  return executable->added_cost > 0 &&
         spare - std::max<Bytes>(0, spare_when_planned) > executable->budget / much_of_a_budget;
}

}  // namespace reprise::internal
