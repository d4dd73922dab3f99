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
  Bytes bytes = recipes->bytes() + profile.bytes() + bytes_of(newest_, common);
  if (executable) bytes += executable->bytes();
  if (plan) bytes += bytes_of(plan->actions);
  return bytes;
}

// The first time, costs are those of the host, which only began the work.
void RecordedPass::take_late_costs() {
  for (; !late.empty(); late.erase(late.begin())) {
    const auto& costs = late.front()->costs();
    if (!costs) return;
    for (const auto& [m, cost] : *costs) {
      if (static_cast<std::size_t>(m) >= profile.moments.size()) continue;
      float& known = profile.cost_at(m);
      known = measured == 0 ? cost : std::min(known, cost);
    }
    ++measured;
  }
}

void RecordedPass::add_other(const std::vector<OtherBytes>& of_step) {
  if (of_step.size() != profile.other.size()) return;
  raise(profile.other, of_step);
  raise(newest_, of_step);
  if (++steps_in_newest_ == steps_in_a_row) {
    profile.other = std::exchange(newest_, {});
    steps_in_newest_ = 0;
  }
  spare = spare_now();
}

Bytes RecordedPass::spare_now() const {
  return executable ? executable->spare(profile.other) : 0;
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
