// Steps in this process: plain LibTorch, re-running checkpoints and Reprise, on one model.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "compare_sample.h"
#include "live_region.h"
#include "live_training.h"
#include "reprise/torch/session.h"

namespace reprise::benchmarks {

// "every 2", "first 4" or "levels" as regions. Throws BadOption for other words.
[[nodiscard]] Regions regions_of(const std::string& way);

class Steps {
 public:
  // Takes two plain steps: the first makes what LibTorch makes once, the second is what others are compared with.
  explicit Steps(const std::string& model);

  [[nodiscard]] Bytes plain_peak() const { return plain_peak_; }  // above the level

  [[nodiscard]] Sample plain();
  [[nodiscard]] Sample region(const Regions&);
  // Waits for plans, before and after: the planner's thread must not work in a timed step. Throws BudgetError.
  [[nodiscard]] Sample reprise(Session&);

  // A session with so many bytes above the level that has followed its plan, or has had time enough to. It first sees
  // the model under the plain peak, because plans reach lower than a first step without one. Throws BudgetError.
  [[nodiscard]] Session settled_session(Bytes budget, std::chrono::milliseconds planning_time);

 private:
  Sample sample_of(const StepResult&) const;

  Training training_;
  Outcome reference_;
  Bytes level_ = 0, plain_peak_ = 0;
};

}  // namespace reprise::benchmarks
