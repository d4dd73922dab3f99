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
#include "torch/recipes/pass_profile.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

struct RecordedPass {
  std::shared_ptr<Recipes> recipes;
  PassProfile profile;
  std::vector<std::shared_ptr<LateCosts>> late;  // not measured yet by the device, oldest first
  int measured = 0;                              // how often costs were measured
  double uses = 0;                               // how often it was met again; those of long ago count less

  // How many operators this one has in common with others from the start.
  std::vector<std::pair<std::weak_ptr<RecordedPass>, Id>> common;
  // What came after it the last time: the first guess the next time.
  std::weak_ptr<RecordedPass> successor;

  int place_in_step = 0;  // how many passes of its step had ended before it, when it was new

  bool record_anew = false;  // a step left it where its moments were not counted: the next one is recorded in full

  // ---- its plan ----
  Bytes budget = 0;                                  // what the plan, or the failure to find one, is for
  std::shared_ptr<const ExecutablePlan> executable;  // none: not planned yet, or infeasible
  std::optional<Plan> plan;                          // that `executable` was made of
  bool given = false;                                // by the user: never replaced
  bool infeasible = false;                           // no plan was found for `budget`
  std::optional<Bytes> smallest_feasible;            // if infeasible
  std::optional<Bytes> floor;                        // likewise: no plan can do with less
  std::string floor_set_by;
  int planned_with = 0;          // `measured` when it was planned
  double searched_for = 0;       // seconds that the last search for a plan was allowed to take
  bool planning = false;         // a job is under way
  Bytes spare = 0;               // what `executable` leaves free of the budget at the tightest moment, with the other
                                 // bytes of `profile`; below zero: they have outgrown it
  Bytes spare_when_planned = 0;  // the same, when it was made

  // ---- what a plan saves, see planning_budget.h ----
  int met = 0;                            // how many steps went through it
  std::optional<double> online_seconds;   // that recomputing values took under the online policy, the least of
  Bytes online_budget = 0;                // steps under this budget
  std::optional<double> planned_seconds;  // the same in the newest step with the plan it has
  double planning_seconds = 0;            // of planning, what no credit paid for

  // Returns whether there are enough measurements to take the least of the costs for the truth.
  [[nodiscard]] bool costs_settled() const { return measured >= measurements; }
  static constexpr int measurements = 4;

  // Returns whether more measurements are wanted than are known or on their way: a device may be several steps behind.
  [[nodiscard]] bool wants_costs() const { return measured + static_cast<int>(late.size()) < measurements; }

  // Takes the costs that the device has measured by now.
  void take_late_costs();

  // Adds the other bytes of a step that was measured from start to end: what counts is the most of the last 16 steps or
  // more, at most 32. So steps that differ a little have one plan, and what really shrank is evicted in the end.
  void add_other(const std::vector<OtherBytes>& of_step);

  // Sets the plan that is followed from now on.
  void use(std::shared_ptr<const ExecutablePlan>, Plan);
  // Drops a plan that does not work: another one is wanted.
  void drop_plan();
  // The other bytes are so much more or less than when it was planned that it wants another plan. It follows
  // the one it has until then: the meter is the limit, and the online policy covers what the plan did not expect.
  [[nodiscard]] bool outgrew_plan() const;

  // Returns about how much memory it takes.
  [[nodiscard]] Bytes bytes() const;

 private:
  [[nodiscard]] Bytes spare_now() const;

  std::vector<OtherBytes> newest_;  // by moment: the most of the newest steps, of `steps_in_newest_`
  int steps_in_newest_ = 0;
};

}  // namespace reprise::internal
