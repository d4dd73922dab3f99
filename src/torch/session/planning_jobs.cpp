#include "torch/session/planning_jobs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "report/floor_parts.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/arbiter.h"
#include "torch/plans/plan_folder.h"
#include "torch/plans/plan_lowering.h"
#include "torch/plans/planning_queue.h"

namespace reprise::internal {
namespace {

constexpr int most_jobs = 16;  // of one session, that wait or run
constexpr int many_new = 8;    // in a row: steps differ, and only what comes again is planned

// What a plan leaves free of its budget, if it can: other bytes that differ a little from step to step do not outgrow
// it.
Bytes slack_of(Bytes budget) {
  constexpr Bytes part = 256, most = 4 << 20;
  return std::min(budget / part, most);
}

// Planning takes memory beside the budget, and steps go on meanwhile.
Bytes memory_for_bounds(Bytes budget) {
  constexpr Bytes part = 16, least = 4 << 20;
  return std::max(budget / part, least);
}

PlanResult make_plan_with_slack(const Trace& trace, PlanOptions options) {
  constexpr double almost = 1.02;  // a budget that a second search may find a plan for
  const Bytes budget = options.budget;
  const Bytes kept = simulate(trace, keep_everything(trace), {.record_live = false, .check_budget = false}).peak;
  if (kept > budget) options.budget -= slack_of(budget);
  PlanResult result = make_plan(trace, options);
  if (!result.has_plan() && options.budget < budget && !result.cancelled &&
      static_cast<double>(result.smallest_feasible.value_or(budget)) <= almost * static_cast<double>(budget)) {
    options.budget = budget;
    result = make_plan(trace, options);
  }
  result.plan.budget = budget;
  return result;
}

// Whether the tier has become much slower or faster than the plan counts on.
bool has_other_terms(const ExecutablePlan& executable, const std::optional<TierCosts>& tier) {
  constexpr double much = 1.5;
  const ExecutablePlan::TierUse& use = executable.below;
  if (!tier || use.puts == 0) return false;
  const double now = static_cast<double>(use.puts) * tier->both_ways(use.bytes / use.puts);
  return now > much * use.both_ways || now * much < use.both_ways;
}

}  // namespace

PassPlan plan_pass(const RecordedPass& known, const OfferedTiers& tiers, PlanOptions options,
                   const std::filesystem::path& folder) {
  PassPlan outcome;
  options.bounds_memory = memory_for_bounds(options.budget);
  try {
    const PassTrace traced = build_trace(known, tiers);
    const Trace& trace = traced.trace;
    PlanResult& result = outcome.result;
    const bool again = known.plan && known.plan->budget == options.budget;  // the one in the folder is the one it has
    const auto stored = again ? std::nullopt : read_from_folder(folder, trace, options.budget);
    if (stored) {
      result.status = PlanStatus::feasible;
      result.plan = *stored;
      result.simulation = simulate(trace, *stored);
    } else {
      result = make_plan_with_slack(trace, options);
      try {
        if (result.has_plan()) write_to_folder(folder, trace, result.plan);
      } catch (const Error& error) {  // it can be followed all the same
        outcome.not_written = error.what();
      }
    }
    if (result.has_plan()) {
      outcome.executable = lower_plan(known, traced, result.plan, simulate(trace, result.plan), result.gap());
    } else {
      outcome.floor_set_by = describe_floor(trace, floor_of(trace));
    }
  } catch (const std::exception& error) {
    outcome.failure = error.what();
    if (outcome.failure.empty()) outcome.failure = "for an unknown reason";
  }
  return outcome;
}

// Keeps neither the session nor the pass alive.
class PlanningJobs::Job final : public PlanningJob {
 public:
  Job(std::weak_ptr<PlanningJobs> of, std::weak_ptr<RecordedPass> pass, Bytes budget, double seconds,
      std::optional<Plan> start)
      : of_(std::move(of)), pass_(std::move(pass)), budget_(budget), seconds_(seconds), start_(std::move(start)) {}

  // Not if it is a second time, after a fork right at the end of the first.
  bool still_wanted() override {
    const auto known = pass_.lock();
    const Arbiter lock;
    return known && known->planning;
  }
  void run() override {
    const auto of = of_.lock();
    const auto known = pass_.lock();
    if (!of || !known) return dropped();
    of->plan(known, budget_, seconds_, start_, *this);
  }
  void dropped() noexcept override {
    const auto of = of_.lock();
    const auto known = pass_.lock();
    const Arbiter lock;
    if (!of || (known && !std::exchange(known->planning, false))) return;
    --of->count_;
    of->budget_.not_done(seconds_);
  }

 private:
  const std::weak_ptr<PlanningJobs> of_;
  const std::weak_ptr<RecordedPass> pass_;
  const Bytes budget_;
  const double seconds_;
  const std::optional<Plan> start_;
};

PlanningJobs::PlanningJobs(std::shared_ptr<RecordingContext> context, PlanningBudget budget,
                           std::filesystem::path folder)
    : context_(std::move(context)), budget_(budget), folder_(std::move(folder)) {}

bool PlanningJobs::worth_it(const RecordedPass& pass, Bytes budget, int new_in_a_row) const {
  if (budget == no_limit || budget_.none() || context_->evicts_everything()) return false;
  if (pass.planning || pass.given || count_ >= most_jobs) return false;
  if (!pass.executable && pass.uses == 0 && new_in_a_row > many_new) return false;
  const bool for_this_budget = pass.budget == budget && (pass.executable || pass.infeasible);
  const bool costs_improved = pass.planned_with < RecordedPass::measurements && pass.costs_settled();
  const bool outgrew = pass.outgrew_plan() && !pass.infeasible;  // where nothing was found, only a longer search may
  const bool tier_changed = pass.executable && has_other_terms(*pass.executable, context_->tiers().below);
  return !for_this_budget || outgrew || costs_improved || tier_changed || budget_.allows_more(pass);
}

void PlanningJobs::ask_for(const std::shared_ptr<RecordedPass>& pass, Bytes budget, const RecordedPassCache& known) {
  if (!worth_it(*pass, budget, known.new_in_a_row())) return;
  if (!folder_.empty() && !pass->executable && !pass->infeasible && take_from_folder(*pass, budget)) return;
  const double seconds = budget_.allows(*pass, known.new_in_a_row());
  if (seconds <= 0) return;
  pass->planning = true;
  budget_.reserve(seconds);
  ++count_;
  const auto relative = pass->plan ? nullptr : known.find_similar(*pass);
  const std::uint64_t number = Planning::of_process().add(
      std::make_shared<Job>(weak_from_this(), pass, budget, seconds, relative ? relative->plan : std::nullopt));
  last_ = std::max(last_, number);
}

bool PlanningJobs::take_from_folder(RecordedPass& pass, Bytes budget) const try {
  const PassTrace traced = build_trace(pass, context_->tiers());
  auto plan = read_from_folder(folder_, traced.trace, budget);
  if (!plan) return false;
  pass.use(lower_plan(pass, traced, *plan, simulate(traced.trace, *plan), 0), *plan);
  context_->hints().learn(pass);
  pass.budget = budget;
  pass.planned_with = pass.measured;
  pass.searched_for = std::numeric_limits<double>::infinity();  // by the program that made it
  return true;
} catch (const std::exception&) {  // it is planned instead, and reported if that fails, too
  return false;
}

void PlanningJobs::plan(const std::shared_ptr<RecordedPass>& pass, Bytes budget, double seconds,
                        std::optional<Plan> start, Job& job) {
  const double began = thread_microseconds();
  RecordedPass known;
  {
    const Arbiter lock;
    known = *pass;
    running_ = &job;
  }
  PlanOptions options;
  options.budget = budget;
  options.time_limit = std::chrono::duration<double>(seconds);
  options.cancel = &job.cancelled();
  options.start = known.plan ? known.plan : std::move(start);
  PassPlan outcome = plan_pass(known, context_->tiers(), options, folder_);

  std::vector<EvictionHints::Seen> learnt;
  {
    const Arbiter lock;
    running_ = nullptr;
    pass->planning = false;
    --count_;
    pass->budget = budget;
    pass->planned_with = known.measured;
    budget_.done(*pass, seconds, (thread_microseconds() - began) * 1e-6);
    if (take(*pass, std::move(outcome)) && !folder_.empty()) learnt = context_->hints().all();
  }
  if (learnt.empty()) return;
  try {
    write_advice(folder_, budget, learnt);
  } catch (const Error& error) {
    const Arbiter lock;
    context_->counters().note(error.what());
  }
}

// False: it follows no other plan than before. Where it has one, it goes on with it: the meter is the limit.
bool PlanningJobs::take(RecordedPass& pass, PassPlan outcome) {
  const PlanResult& result = outcome.result;
  if (!outcome.not_written.empty()) context_->counters().note(outcome.not_written);
  if (!outcome.failure.empty()) {
    context_->counters().note("a trace could not be planned: " + outcome.failure);
    pass.infeasible = true;
    return false;
  }
  if (pass.given) return false;
  pass.infeasible = !outcome.executable;
  pass.smallest_feasible = result.smallest_feasible;
  pass.floor = outcome.executable ? std::nullopt : std::optional(result.floor);
  pass.floor_set_by = outcome.floor_set_by;
  if (!outcome.executable) return false;
  pass.use(std::move(outcome.executable), std::move(outcome.result.plan));
  context_->hints().learn(pass);
  return true;
}

void PlanningJobs::read_advice_for(Bytes budget) {
  if (budget != no_limit) context_->hints().add(read_advice(folder_, budget));
}

void PlanningJobs::cancel() {
  const Arbiter lock;
  if (running_) running_->cancel();
}

}  // namespace reprise::internal
