// What a session knows: its options, the periods it has met, and the numbers of its summary. Recordings and hooks hold
// on to it, so it outlives its Session. Everything here happens under the arbiter's lock, unless it says otherwise.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "reprise/torch/session.h"
#include "torch/executor.h"
#include "torch/known_periods.h"
#include "torch/planning.h"
#include "torch/recording.h"

namespace reprise::internal {

class SessionState : public std::enable_shared_from_this<SessionState> {
 public:
  explicit SessionState(SessionOptions);

  SessionOptions options;  // the budget in it is of the next step
  bool enabled = true;     // from the next step on
  bool region = false;     // of checkpoint(): no steps and no plans, only periods, each of which ends with its function

  // ---- steps, on their own thread, not under the lock ----
  // Without a budget nothing is forgotten: once a trace is known, most steps need not be recorded.
  [[nodiscard]] bool would_record() const;
  void open_step();
  void close_step() noexcept;
  // In the child of a fork, under the lock: steps of threads that are not there are not open, and the time of this
  // thread begins at zero.
  static void keep_step_of_this_thread();

  // ---- periods ----
  // The recording of a period that begins, on a guess of which one it will be; or without one, if its first operators
  // were not seen.
  [[nodiscard]] std::shared_ptr<Recording> begin_period(bool seen_from_the_start = true);
  // It has ended: what was seen is remembered, and a plan is asked for where one is missing.
  void end_period(Recording&);
  // The function of a region has ended; the next call follows its recipes.
  void end_region(Recording&);
  [[nodiscard]] std::shared_ptr<Period> period_of(const Recipes& recipes) const { return periods_.of(recipes); }
  // Offers the other periods that began like this one, until one is accepted.
  [[nodiscard]] bool any_alternative(Recording&,
                                     const std::function<bool(const std::shared_ptr<Period>&)>& accepted) const;
  // nullptr: no plan that keeps to the budget of the step.
  [[nodiscard]] std::unique_ptr<Executor> executor_for(const Period&) const;
  // Plans for a budget that is to come, from the traces that are known.
  void plan_for(Bytes budget);
  // From now on the period of the last complete step follows this plan. Throws BadInput. Not under the lock.
  void use(Plan);
  // Until no planning of this session is under way. Not under the lock.
  // Nobody is going to use the plan that is being made.
  void give_up_planning();
  void wait_for_plans();

  // ---- policy ----
  void name(const at::Tensor& parameter, const std::string& module);
  // The module whose parameter is in this storage; nullptr: none.
  [[nodiscard]] const std::string* module_of(const c10::StorageImpl*) const;
  [[nodiscard]] Choice choose(const PolicyOperator&);

  // ---- exactness ----
  [[nodiscard]] bool verifies(const Recipes& recipes, Id value) const;
  // Why this operator is not to be replayed, if verify found out; nullptr: it may be.
  [[nodiscard]] const char* distrusted(const OperatorInfo&, Id op) const;
  void distrust(Recording&, Id op);

  // ---- counting ----
  void count_forgotten(Bytes bytes) { numbers_.forgotten_last_step += bytes; }
  void count_packed(Bytes plain, Bytes packed);
  void count_packing(double microseconds);
  void count_replays(std::int64_t operators, double microseconds);
  void count_verified() { ++numbers_.verified; }
  void count_kept(const Recipes&, Id op, Bytes);
  void count_divergence(const std::string& why);
  void met_on_other_device(Bytes);
  void met_unmetered(Bytes, const void* storage);

  [[nodiscard]] Summary summary() const;
  [[nodiscard]] std::optional<Trace> trace() const;
  [[nodiscard]] std::optional<Plan> plan() const;
  [[nodiscard]] Bytes step_budget() const { return step_budget_; }
  // The smallest budget with a proven plan, if planning found none for this one.
  [[nodiscard]] std::optional<Bytes> smallest_feasible() const;

 private:
  void remember(Recording&);
  void learn_from(Recording&);
  void plan_if_worth_it(const std::shared_ptr<Period>&, Bytes budget);
  // Not under the lock, unless only the folder is looked at. `job`: nullptr, or the one that does it.
  void plan(const std::shared_ptr<Period>&, Bytes budget, bool only_from_folder, PlanningJob* job);
  [[nodiscard]] std::shared_ptr<Period> longest_of_last_step() const;

  [[nodiscard]] std::shared_ptr<Recording> begin_region();

  KnownPeriods periods_;
  std::shared_ptr<Recipes> region_recipes_;  // of the last call
  Bytes step_budget_ = no_limit;             // of the step that is open, or was last
  std::weak_ptr<Period> last_, first_;       // the one that ended last; the one that steps begin with
  bool first_in_step_ = true;
  std::weak_ptr<Period> longest_, longest_of_last_step_;
  int ended_in_step_ = 0, planned_in_step_ = 0;  // periods, and those that followed their plan to the end
  int since_recorded_ = 0;                       // steps that ran plainly, since the last one that was recorded
  int jobs_ = 0;                                 // of planning
  PlanningJob* running_ = nullptr;               // one of them
  bool plan_given_ = false;                      // by the user, so that values are forgotten without a budget, too
  std::set<std::pair<const OperatorInfo*, Id>> distrusted_;
  std::set<std::string> module_names_;
  std::unordered_map<const c10::StorageImpl*, const std::string*> modules_;  // by the storage of a parameter
  std::unordered_map<const void*, Bytes> unmetered_;
  std::map<std::string, KeptOperator> kept_;
  Summary numbers_;
};

// Bytes that are to stay free for packing while no plan accounts for them.
void reserve_for_packing(Bytes);

}  // namespace reprise::internal
