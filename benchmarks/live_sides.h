// The sides of one comparison: plain, regions, Reprise. Every step of every side is checked against plain ones.
#pragma once

#include <cstdint>
#include <optional>

#include "live_measure.h"
#include "live_settings.h"
#include "live_training.h"

namespace reprise::benchmarks {

class Sides {
 public:
  // Takes two plain steps: the first makes what LibTorch makes once, the second is the measure of bytes.
  explicit Sides(const Settings&);

  [[nodiscard]] const Ground& ground() const { return ground_; }
  [[nodiscard]] int steps_per_sample() const { return steps_; }

  // CPU seconds of as many steps as are timed as one, or of `steps`.
  double plain() { return plain(steps_); }
  double plain(int steps);
  double region();
  // Throws NotKept. Waits for plans, before and after: the planner's thread must not work in a timed step.
  double reprise(Session& session) { return reprise(session, steps_); }
  double reprise(Session&, int steps);

  // With an optimizer: all sides go on from where the last plain step ended.
  void advance();

  // A session with this budget above the level.
  [[nodiscard]] Session session(Bytes budget, std::chrono::milliseconds planning_time) const;

  struct Tally {
    Bytes peak = 0, region_peak = 0;  // above the level, largest of all steps
    Bytes level_growth = 0;
    bool bit_equal = true, region_gradients_equal = true, region_buffers_equal = true;
    double planning_seconds = 0;  // by the wall clock
  };
  [[nodiscard]] const Tally& tally() const { return tally_; }
  // From here on the peak is that of the steps to come.
  void begin_peak() { tally_.peak = 0; }

 private:
  StepResult checked_plain();
  void check_reprise();
  void check_region();
  void note_level(const StepResult&);
  void wait_for_plan(Session&);

  Settings settings_;
  Training training_;
  Ground ground_;
  int steps_ = 1;
  std::optional<Outcome> reference_;  // of the first plain step from the present start
  Tally tally_;
};

// The budget above the level that the settings ask for.
[[nodiscard]] Bytes asked_budget(const Settings&, Bytes plain_peak);

}  // namespace reprise::benchmarks
