// A pass that was seen from its first operator to the end of backward, and what is known about it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/plan/planner.h"
#include "torch/plans/executable_plan.h"
#include "torch/recipes/device_timing.h"
#include "torch/recipes/observations.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

struct RecordedPass {
  std::shared_ptr<Recipes> recipes;
  Observations seen;
  std::vector<float> costs;                      // by operator: the least that was measured
  std::vector<std::shared_ptr<LateCosts>> late;  // that the device has not told yet, oldest first
  std::vector<OtherBytes> other;                 // by moment: the most that was seen lately, see `see_other`
  int measured = 0;                              // how often costs were measured
  double uses = 0;                               // how often it was met again; those of long ago count less

  // How many operators this one has in common with others from the start.
  std::vector<std::pair<std::weak_ptr<RecordedPass>, Id>> common;
  // What came after it the last time: the first guess the next time.
  std::weak_ptr<RecordedPass> successor;

  int place_in_step = 0;  // how many passes of its step had ended before it, when it was new

  bool record_anew = false;  // a step left it where its moments were not counted: the next one is recorded in full

  // ---- its plan ----
  Bytes budget = 0;                                  // what the executable, or the failure to find one, is for
  std::shared_ptr<const ExecutablePlan> executable;  // none: not planned yet, or infeasible
  std::optional<Plan> plan;                          // behind the executable
  bool given = false;                                // by the user: never replaced
  bool infeasible = false;                           // no plan was found for `budget`
  std::optional<Bytes> smallest_feasible;            // if infeasible
  std::optional<Bytes> floor;                        // likewise: no plan can do with less
  std::string floor_set_by;
  int planned_with = 0;     // `measured` when it was planned
  double searched_for = 0;  // seconds that the last search for a plan was allowed to take
  bool planning = false;    // a job is under way
  Bytes spare = 0;          // what the executable leaves free of the budget at the tightest moment, with `other`; below
                            // zero: the other bytes have outgrown it
  Bytes spare_when_planned = 0;  // the same, when it was made

  // ---- what a plan saves, see planning_budget.h ----
  int met = 0;                            // how many steps went through it
  std::optional<double> online_seconds;   // that recomputing values took under the online policy, the least of
  Bytes online_budget = 0;                // steps under this budget
  std::optional<double> planned_seconds;  // the same in the newest step with the plan it has
  double planning_seconds = 0;            // of planning, what no credit paid for

  // After so many measurements the least of the costs is taken for the truth.
  [[nodiscard]] bool costs_settled() const { return measured >= measurements; }
  static constexpr int measurements = 4;

  // Whether so many are neither known nor on their way: a device may be several steps behind.
  [[nodiscard]] bool wants_costs() const { return measured + static_cast<int>(late.size()) < measurements; }

  // CPU seconds of all its moments, or the device's.
  [[nodiscard]] double seconds() const;

  // Learns what the device has told by now about the steps whose costs it measures.
  void take_late_costs();

  // The other bytes of a step that was measured from start to end: what counts is the most of the last 16 steps or
  // more, at most 32. So steps that differ a little have one plan, and what really shrank is evicted in the end.
  void see_other(const std::vector<OtherBytes>& of_step);

  // Follows this plan from now on.
  void use(std::shared_ptr<const ExecutablePlan>, Plan);
  // It does not work: it wants another one.
  void drop_plan();
  // The other bytes are so much more, or so much less, than when it was planned that it wants another plan. It follows
  // the one it has until then: the meter is the limit, and the online policy covers what the plan did not expect.
  [[nodiscard]] bool outgrew_plan() const;

  // What it takes in memory, about.
  [[nodiscard]] Bytes bytes() const;

 private:
  [[nodiscard]] Bytes spare_now() const;

  std::vector<OtherBytes> lately_;  // by moment: the most of the last few steps, `steps_lately_`
  int steps_lately_ = 0;
};

}  // namespace reprise::internal
