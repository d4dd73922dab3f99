// The sides of a comparison on one model (plain, regions that are run again, Reprise), each checked bit by bit against
// plain steps, and the loop that measures them in turn.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reprise/torch/session.h"
#include "training_figures.h"
#include "training_run.h"

namespace reprise::benchmarks {

class Sides {
 public:
  // Takes two plain steps: the first makes what LibTorch makes once, the second is the measure of bytes.
  Sides(const std::string& model, const std::string& optimizer);

  [[nodiscard]] Bytes level() const { return level_; }                          // live at the start of a step
  [[nodiscard]] Bytes plain_peak() const { return plain_peak_; }                // above the level
  [[nodiscard]] double plain_seconds() const { return plain_seconds_; }         // of the second plain step
  [[nodiscard]] Bytes level_growth() const { return level_growth_; }            // of any step since
  [[nodiscard]] double planning_seconds() const { return waiting_for_plans_; }  // by the wall clock, of all sessions

  // This many steps, one after the other. Plain ones throw Error if they differ from each other: then no comparison
  // means anything. Those of Reprise throw BudgetError, and wait for plans before and after: the planner's thread must
  // not work in a timed step.
  Sample plain(int steps = 1);
  Sample rerun(const Regions&, int steps = 1);
  Sample reprise(Session&, int steps = 1);

  // Returns a session with these options and a budget of `budget` above the level.
  [[nodiscard]] Session session(SessionOptions, Bytes budget) const;

  // Runs steps until caches are warm, and a plan is followed or has had enough time. Throws BudgetError.
  Sample warm_up(Session&, std::chrono::milliseconds planning_time);

  // With an optimizer: all sides go on from where the last step ended, which has to be a plain one.
  void advance();

 private:
  Sample checked(const StepResult&, const Outcome&);
  void wait_for_plan(Session&);

  Training training_;
  std::optional<Outcome> reference_;  // of the first plain step from the present start
  Bytes level_ = 0, plain_peak_ = 0, level_growth_ = 0;
  double plain_seconds_ = 0, waiting_for_plans_ = 0;
};

// None: the side has failed, and has no ratio.
using TakeSample = std::function<std::optional<Sample>()>;

// Measures sides against the plain samples before and after them.
class Round {
 public:
  // This many sides stand between two plain samples, and are compared with the mean of these.
  Round(TakeSample plain, std::size_t between, Plain& result)
      : plain_(std::move(plain)), between_(between), result_(result) {}

  void add(TakeSample sample, Measured& into) { sides_.push_back({std::move(sample), &into}); }
  // Plain itself, as a side.
  void add_plain_again() { add(plain_, result_.again); }

  // Every side once, in the order they were added or backwards.
  void run(bool backwards = false);

 private:
  struct Side {
    TakeSample sample;
    Measured* into;
  };
  Sample plain_sample();

  TakeSample plain_;
  std::size_t between_;
  Plain& result_;
  std::vector<Side> sides_;
};

}  // namespace reprise::benchmarks
