#include "torch/planning_jobs.h"

#include <utility>

#include "torch/arbiter.h"
#include "torch/bridge.h"
#include "torch/plan_folder.h"
#include "torch/planning.h"
#include "torch/process.h"

namespace reprise::internal {
namespace {

constexpr int most_jobs = 16;  // of one session, that wait or run
constexpr int many_new = 8;    // in a row: steps differ, and only what comes again is planned

struct Outcome {
  PlanResult result;
  std::shared_ptr<const Script> script;  // if there is a plan
  std::string failure;                   // of planning itself
};

Outcome make(const Period& known, const PlanOptions& options, bool pack, const std::filesystem::path& folder) {
  Outcome outcome;
  try {
    const Bridge bridge(known, pack);
    PlanResult& result = outcome.result;
    if (const auto stored = read_from_folder(folder, bridge.trace(), options.budget)) {
      result.status = PlanStatus::feasible;
      result.plan = *stored;
      result.simulation = simulate(bridge.trace(), *stored);
    } else {
      result = make_plan(bridge.trace(), options);
      if (result.has_plan()) write_to_folder(folder, bridge.trace(), result.plan);
    }
    if (result.has_plan()) {
      outcome.script = bridge.script(result.plan, simulate(bridge.trace(), result.plan), result.gap());
    }
  } catch (const std::exception& error) {
    outcome.failure = error.what();
    if (outcome.failure.empty()) outcome.failure = "for an unknown reason";
  }
  return outcome;
}

}  // namespace

// Keeps neither the session nor the period alive.
class PlanningJobs::Job final : public PlanningJob {
 public:
  Job(std::weak_ptr<PlanningJobs> of, std::weak_ptr<Period> period, Bytes budget)
      : of_(std::move(of)), period_(std::move(period)), budget_(budget) {}

  // Not if it is a second time, after a fork right at the end of the first.
  bool still_wanted() override {
    const auto known = period_.lock();
    const Arbiter lock;
    return known && known->planning;
  }
  void run() override {
    const auto of = of_.lock();
    const auto known = period_.lock();
    if (!of || !known) return dropped();
    of->plan(known, budget_, *this);
  }
  void dropped() noexcept override {
    const auto of = of_.lock();
    const auto known = period_.lock();
    const Arbiter lock;
    if (of && (!known || std::exchange(known->planning, false))) --of->count_;
  }

 private:
  const std::weak_ptr<PlanningJobs> of_;
  const std::weak_ptr<Period> period_;
  const Bytes budget_;
};

PlanningJobs::PlanningJobs(std::shared_ptr<Rules> rules, std::chrono::milliseconds time_limit,
                           std::filesystem::path folder)
    : rules_(std::move(rules)), time_limit_(time_limit), folder_(std::move(folder)) {}

bool PlanningJobs::worth_it(const Period& period, Bytes budget, int new_in_a_row) const {
  if (budget == no_limit || time_limit_.count() <= 0 || rules_->forgets_everything()) return false;
  if (period.planning || period.given || count_ >= most_jobs) return false;
  if (!period.script && period.uses == 0 && new_in_a_row > many_new) return false;
  const bool for_this_budget = period.budget == budget && (period.script || period.infeasible);
  const bool costs_improved = period.planned_with < Period::measurements && period.costs_settled();
  return !for_this_budget || period.outgrown || costs_improved;
}

void PlanningJobs::ask_for(const std::shared_ptr<Period>& period, Bytes budget, int new_in_a_row) {
  if (!worth_it(*period, budget, new_in_a_row)) return;
  if (!folder_.empty() && !period->script && !period->infeasible && take_from_folder(*period, budget)) return;
  period->planning = true;
  ++count_;
  process().planning().add(std::make_shared<Job>(weak_from_this(), period, budget));
}

bool PlanningJobs::take_from_folder(Period& period, Bytes budget) const try {
  const Bridge bridge(period, rules_->packs());
  auto plan = read_from_folder(folder_, bridge.trace(), budget);
  if (!plan) return false;
  period.script = bridge.script(*plan, simulate(bridge.trace(), *plan), 0);
  period.plan = std::move(plan);
  period.budget = budget;
  period.planned_with = period.measured;
  period.outgrown = false;
  return true;
} catch (const std::exception&) {  // it is planned instead, and told if that fails, too
  return false;
}

void PlanningJobs::plan(const std::shared_ptr<Period>& period, Bytes budget, Job& job) {
  Period known;
  {
    const Arbiter lock;
    known = *period;
    period->outgrown = false;
    running_ = &job;
  }
  PlanOptions options;
  options.budget = budget;
  options.time_limit = time_limit_;
  options.cancel = &job.cancelled();
  options.start = known.plan;
  Outcome outcome = make(known, options, rules_->packs(), folder_);
  const PlanResult& result = outcome.result;

  const Arbiter lock;
  running_ = nullptr;
  period->planning = false;
  --count_;
  period->budget = budget;
  period->planned_with = known.measured;
  if (result.keep_everything_peak > 0) period->kept_peak = result.keep_everything_peak;
  if (!outcome.failure.empty()) {
    rules_->counters().diverged("a trace could not be planned: " + outcome.failure);
    period->infeasible = true;
    return;
  }
  if (period->given) return;
  period->infeasible = !outcome.script;
  period->smallest_feasible = result.smallest_feasible;
  period->script = std::move(outcome.script);
  if (period->script) period->plan = std::move(outcome.result.plan);
}

void PlanningJobs::cancel() {
  const Arbiter lock;
  if (running_) running_->cancel();
}

}  // namespace reprise::internal
