// What a session knows: its options, its rules, the periods it has met, and the plans that are being made for them.
// Everything here happens under the arbiter's lock, unless it says otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "reprise/torch/session.h"
#include "torch/periods.h"
#include "torch/planning_jobs.h"
#include "torch/source.h"

namespace reprise::internal {

class SessionState final : public Source {
 public:
  explicit SessionState(SessionOptions);

  [[nodiscard]] const std::string& name() const { return options_.name; }
  // Of the next step. Traces that are known are planned for it.
  [[nodiscard]] Bytes budget() const { return options_.budget; }
  void budget(Bytes);
  // From the next step on.
  [[nodiscard]] bool enabled() const { return enabled_; }
  void enabled(bool on) { enabled_ = on; }
  [[nodiscard]] Rules& rules() override { return *rules_; }

  // ---- steps, see steps.h ----
  // False: the step need not be recorded. Without a budget nothing is forgotten, and once a trace is known, most are
  // not.
  [[nodiscard]] bool begin_step();
  void end_step(double seconds);

  // ---- periods ----
  [[nodiscard]] std::shared_ptr<Recording> begin_period() override;
  [[nodiscard]] std::shared_ptr<Recording> begin_period_in_the_middle();
  void end_period(Recording&) override;

  // ---- planning ----
  // From now on the period of the last complete step follows this plan. Throws BadInput. Not under the lock.
  void follow(Plan);
  // Nobody is going to use the plan that is being made.
  void give_up_planning() { jobs_->cancel(); }

  // ---- the outcome, not under the lock ----
  [[nodiscard]] Summary summary() const;
  [[nodiscard]] std::optional<Trace> trace() const;
  [[nodiscard]] std::optional<Plan> plan() const;

 private:
  [[nodiscard]] bool would_record() const;
  void see_open_steps();
  [[nodiscard]] Bytes planned_share(Bytes budget);
  void ask_for_plan(const std::shared_ptr<Period>&, Bytes budget);

  SessionOptions options_;
  bool enabled_ = true;
  const std::shared_ptr<Rules> rules_;
  const std::shared_ptr<PlanningJobs> jobs_;
  Periods periods_;
  DiskTotals disk_before_;  // when the last step began
  int since_recorded_ = 0;  // steps that ran plainly, since the last one that was recorded
  int side_by_side_ = 1;    // the most steps that were open at once lately
  int since_so_many_ = 0;   // steps since there were so many
  Bytes share_ = 0;         // of the budget, that plans are made for
};

}  // namespace reprise::internal
