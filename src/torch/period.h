// A period that was seen from its first operator to the end of backward, and what is known about it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/plan/planner.h"
#include "torch/observations.h"
#include "torch/recipes.h"
#include "torch/script.h"

namespace reprise::internal {

struct Period {
  std::shared_ptr<Recipes> recipes;
  Observations seen;
  std::vector<float> costs;       // by operator: the least that was measured
  std::vector<OtherBytes> other;  // by moment: of the newest step that was measured from start to end
  int measured = 0;               // how often costs were measured
  double uses = 0;                // how often it was met again; those of long ago count less

  // How many operators this one has in common with others from the start.
  std::vector<std::pair<std::weak_ptr<Period>, Id>> common;
  // What came after it the last time: the first guess the next time.
  std::weak_ptr<Period> successor;

  bool record_anew = false;  // a step left it where its moments were not counted: the next one is recorded in full

  // ---- its plan ----
  Bytes budget = 0;                        // what the script, or the failure to find one, is for
  std::shared_ptr<const Script> script;    // none: not planned yet, or infeasible
  std::optional<Plan> plan;                // behind the script
  bool given = false;                      // by the user: never replaced
  bool infeasible = false;                 // no plan was found for `budget`
  std::optional<Bytes> smallest_feasible;  // if infeasible
  std::optional<Bytes> kept_peak;          // if nothing were forgotten, once it was asked for
  int planned_with = 0;                    // `measured` when it was planned
  bool planning = false;                   // a job is under way
  bool outgrown = false;                   // the other bytes are more than the plan allows for

  // After so many measurements the least of the costs is taken for the truth.
  [[nodiscard]] bool costs_settled() const { return measured >= measurements; }
  static constexpr int measurements = 4;

  // What it was planned for does not hold any more: it wants another plan.
  void drop_plan();

  // What it takes in memory, about.
  [[nodiscard]] Bytes bytes() const;
};

}  // namespace reprise::internal
