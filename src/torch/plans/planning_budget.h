// What planning may cost: a share of the CPU time that steps have taken so far, and never more than it can be expected
// to save. Under the arbiter's lock.
//
// A plan of a pass saves the difference between what recomputing values (replaying and packing) takes in a step under
// the online policy and in one that follows the plan, both measured, in as many steps as there will be: as many as
// there were. Before there is a plan, the share that plans have saved in this session is taken for granted, or else a
// third.
//
// A session begins with a credit, because most programs do the same in every step: half of what is left of it may go
// into any plan, that of a trace that was met only once, too. If that one is new, too, it is a quarter, and so on: the
// plans that there are serve their relatives. The credit is worth a few steps: where they are short, and perhaps the
// training, it is less. There is another one when the user sets another budget, because then plans are wanted at once.
#pragma once

#include <chrono>

#include "torch/plans/recorded_pass.h"

namespace reprise::internal {

class PlanningBudget {
 public:
  // `share`: of the time of steps; infinite: there is no limit but `most` for each plan. Zero, either of them: no
  // plans.
  PlanningBudget(double share, std::chrono::milliseconds most);

  void renew_credit() { from_credit_ = 0; }
  // A step has taken so long, all in all.
  void trained(double seconds);
  // A step has gone through the pass, and recomputing values took so long.
  void went_through(RecordedPass&, double recomputing_seconds, bool with_plan, Bytes budget);

  // CPU seconds that planning of the pass may take now, if it is the last of so many in a row that were new. Zero: it
  // is not worth it.
  [[nodiscard]] double allows(const RecordedPass&, int new_in_a_row = 1) const;
  // Planning will take at most so long; and then it was not done, or has taken so long.
  void reserve(double seconds) { reserved_ += seconds; }
  void not_done(double reserved) { reserved_ -= reserved; }
  void done(RecordedPass&, double reserved, double seconds);
  // A plan was made that a step could not do without, whatever it costs.
  void paid(double seconds) { spent_ += seconds; }

  // Whether a longer search for a plan of the pass is worth it, though nothing has changed.
  [[nodiscard]] bool allows_more(const RecordedPass&) const;
  [[nodiscard]] bool unlimited() const;
  [[nodiscard]] bool none() const { return share_ <= 0 || most_ <= 0; }

  // CPU seconds, in all.
  [[nodiscard]] double cost() const { return spent_; }
  [[nodiscard]] double saved() const { return saved_; }

 private:
  [[nodiscard]] double saves_per_step(const RecordedPass&) const;
  [[nodiscard]] double credit() const;
  [[nodiscard]] double credit_left() const;

  const double share_, most_;
  int steps_ = 0;
  double trained_ = 0, reserved_ = 0;
  double spent_ = 0, from_credit_ = 0,
         beyond_credit_ = 0;              // all in all; of the present credit; what no credit paid for
  double saved_ = 0, without_plans_ = 0;  // in steps with plans; what the same steps would have taken without
};

}  // namespace reprise::internal
