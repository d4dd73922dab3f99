// The passes of a session: which one a step will go through next, and what is learnt from those that have ended. Under
// the arbiter's lock.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "torch/plans/planning_budget.h"
#include "torch/plans/recorded_pass_cache.h"
#include "torch/values/recording.h"

namespace reprise::internal {

// A plan for a pass that was never seen: the one that comes after so many others of the next step have ended. It was
// made in a rehearsal (rehearsal.h).
struct AnnouncedPlan {
  int place_in_step = 0;
  std::shared_ptr<const ExecutablePlan> executable;
  Plan plan;
};

// What the longest pass of a step came to, for the summary.
struct LongestPass {
  std::weak_ptr<RecordedPass> pass;
  std::shared_ptr<const ExecutablePlan> executable;  // of the plan that it followed; nullptr: none
  std::vector<OtherBytes> other;           // by moment: in that step, if they were measured, or of the last steps
  mutable std::optional<Bytes> kept_peak;  // if nothing had been evicted, once that was asked for
};

class RecordedPassTracker {
 public:
  RecordedPassTracker(std::shared_ptr<RecordingContext> context, PlanningBudget& planning)
      : context_(std::move(context)), planning_(planning) {}

  [[nodiscard]] const RecordedPassCache& known() const { return known_; }
  // Once a trace is known and its costs are settled, steps under no budget need not be recorded.
  [[nodiscard]] bool wants_recording() const;

  void begin_step();
  void end_step();
  // Every pass of the step followed its plan to the end.
  [[nodiscard]] bool followed_plans() const { return ended_ > 0 && planned_ == ended_; }
  // What the passes of the step took on the accelerator, as far as that is known; 0 on the CPU.
  [[nodiscard]] double seconds_of_device() const { return seconds_of_device_; }
  // How many have ended in the present step, or in the last.
  [[nodiscard]] int ended() const { return ended_; }
  // The longest one of the present step, or else of the last; nullptr: none was complete.
  [[nodiscard]] std::shared_ptr<RecordedPass> longest() const;
  [[nodiscard]] const LongestPass& seen_of_longest() const { return seen_of_longest_; }

  // Plans for the next step, or for the rest of the present one: its passes are recorded as if nothing were known.
  void announce(std::vector<AnnouncedPlan> plans) { announced_ = std::move(plans); }

  // Returns what a device has not measured yet of the one that comes next, if the guess is right; see LateCosts.
  [[nodiscard]] std::vector<std::shared_ptr<LateCosts>> late_costs_of_next() const;
  // The recording of a pass that begins, on a guess of which one it will be.
  [[nodiscard]] std::shared_ptr<Recording> begin();
  // The same without a guess: its first operators were not seen, so its trace is not planned.
  [[nodiscard]] std::shared_ptr<Recording> begin_in_the_middle();
  // It has ended: what was seen is remembered. Returns the pass; nullptr: nothing to be remembered.
  std::shared_ptr<RecordedPass> end(Recording&);

  // What is known about the smallest budget, if planning found no plan for this one.
  [[nodiscard]] SmallestBudget smallest() const;

 private:
  [[nodiscard]] std::shared_ptr<RecordedPass> guess() const;
  [[nodiscard]] std::shared_ptr<Recording> begin(std::shared_ptr<RecordedPass> followed);
  [[nodiscard]] Bytes most_bytes() const;
  // nullptr: nothing was announced for the pass after so many.
  [[nodiscard]] const AnnouncedPlan* announced_after(int ended) const;
  void remember(Recording&);
  void learn_from(Recording&);
  void see_longest(Recording&);

  const std::shared_ptr<RecordingContext> context_;
  PlanningBudget& planning_;
  RecordedPassCache known_;
  std::weak_ptr<RecordedPass> last_, first_;  // the one that ended last; the one that steps begin with
  bool first_in_step_ = true;
  std::weak_ptr<RecordedPass> longest_, longest_of_last_step_;
  LongestPass seen_of_longest_;
  std::vector<AnnouncedPlan> announced_;
  int ended_ = 0, planned_ = 0;  // in the step; of them, those that followed their plan to the end
  double seconds_of_device_ = 0;
};

}  // namespace reprise::internal
