// What a session knows: its options, its context, the passes it has met, and the plans that are being made for them.
// Everything here happens under the arbiter's lock, unless it says otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/torch/session.h"
#include "torch/session/planning_jobs.h"
#include "torch/session/recorded_pass_tracker.h"
#include "torch/session/recording_owner.h"

namespace reprise::internal {

class SessionState final : public RecordingOwner {
 public:
  explicit SessionState(SessionOptions);

  [[nodiscard]] const std::string& name() const { return options_.name; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  // ---- devices ----
  // Of the next step: at the first device, or at each of them. Traces that are known are planned for the first.
  [[nodiscard]] Bytes budget() const { return budgets_.front(); }
  // A share is measured by the next two steps, which are not limited by it.
  void budget(DeviceOrdinal, const Budget&);
  // Which device that is, if it can have this budget. Throws BadOption. Not under the lock.
  [[nodiscard]] DeviceOrdinal device_for(const std::string& device, const Budget& budget) const;
  // A step has ended with its work done: after the second of them, shares are bytes. Not under the lock.
  void measure_shares() noexcept;
  // The open step has failed, so that it measures no shares; for languages whose exceptions C++ does not see. Not under
  // the lock.
  void step_failed();

  // False: the options name no device, and it is not known yet where the parameters are, see device_inference.h. Not
  // only under the lock.
  [[nodiscard]] bool has_device() const { return has_device_.load(std::memory_order_acquire); }
  // A step is about to begin: without an accelerator that is in use, the device is the CPU. Not under the lock.
  void look_for_device();
  // Likewise: see CountedDevice::look. Not under the lock.
  void look_at_devices() const;
  // A parameter is there. Not under the lock.
  void meet_parameter(c10::Device);
  // Throws BadOption if a budget cannot hold, at its device or where the parameters are. Not under the lock.
  void check_devices() const;

  // From the next step on.
  [[nodiscard]] bool enabled() const { return enabled_; }
  void enabled(bool on) { enabled_ = on; }
  [[nodiscard]] RecordingContext& context() override { return *context_; }

  // ---- steps, see steps.h ----
  // False: the step need not be recorded. Without a budget nothing is evicted, and once a trace is known, most are
  // not.
  [[nodiscard]] bool begin_step();
  // True until a step has begun.
  [[nodiscard]] bool is_new() const { return is_new_; }
  void end_step(double seconds);

  // ---- passes ----
  void ask_device() override;
  [[nodiscard]] std::shared_ptr<Recording> begin_pass() override;
  [[nodiscard]] std::shared_ptr<Recording> begin_pass_in_the_middle();
  void end_pass(Recording&) override;

  // ---- planning ----
  // From now on the pass of the last complete step follows this plan. Throws BadInput. Not under the lock.
  void follow(Plan);
  // Plans for the passes of the next step, which were never seen, and what they have cost in CPU seconds.
  void announce(std::vector<AnnouncedPlan>, double seconds);
  // The part of the budget that plans are made for.
  [[nodiscard]] Bytes budget_of_plans() { return planned_share(budget()); }
  [[nodiscard]] const RecordedPassTracker& passes() const { return passes_; }
  [[nodiscard]] std::uint64_t last_planning_job() const { return jobs_->last(); }
  // Nobody is going to use the plan that is being made.
  void give_up_planning() { jobs_->cancel(); }

  // ---- the outcome, not under the lock ----
  [[nodiscard]] Summary summary() const;
  [[nodiscard]] std::optional<Trace> trace() const;
  [[nodiscard]] std::optional<Plan> plan() const;

 private:
  [[nodiscard]] bool would_record() const;
  void add_devices(Summary&) const;
  void see_open_steps();
  [[nodiscard]] Bytes planned_share(Bytes budget);
  void ask_for_plan(const std::shared_ptr<RecordedPass>&, Bytes budget);

  SessionOptions options_;
  std::vector<Bytes> budgets_;   // by device; no limit while a share is being measured
  std::vector<Budget> written_;  // by device, as the options or the program gave them
  int measured_steps_ = 0;       // plain ones whose work was done, while there are shares
  bool step_failed_ = false;     // the open one
  std::atomic<bool> has_device_;
  std::string problem_;  // why the budget cannot hold where the parameters are; empty: it can
  bool enabled_ = true;
  const std::shared_ptr<RecordingContext> context_;
  const std::shared_ptr<PlanningJobs> jobs_;
  RecordedPassTracker passes_;
  TierTotals disk_before_;  // when the last step began
  TierTotals host_before_;  // likewise
  bool is_new_ = true;
  int since_recorded_ = 0;  // steps that ran plainly, since the last one that was recorded
  int side_by_side_ = 1;    // the most steps that were open at once in the newest steps
  int since_so_many_ = 0;   // steps since there were so many
  Bytes share_ = 0;         // of the budget, that plans are made for
};

// What is inside of a session, for those who speak another language.
struct SessionInside {
  [[nodiscard]] static SessionState& of(const Session& session) { return *session.state_; }
};

}  // namespace reprise::internal
