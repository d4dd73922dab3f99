#include "torch/session_state.h"

#include <algorithm>

#include "torch/automatic.h"
#include "torch/bridge.h"
#include "torch/meter.h"
#include "torch/online.h"
#include "torch/plan_folder.h"
#include "torch/planning.h"
#include "torch/recorder.h"

namespace reprise::internal {
namespace {

// What the periods that a session knows may take, beside a sixteenth of its budget.
constexpr Bytes bytes_of_periods = 8 << 20;
constexpr int most_jobs = 16;         // of planning, that wait or run
constexpr int many_new = 8;           // in a row: steps differ, and only what comes again is planned
constexpr int cost_measurements = 4;  // after so many steps the least of the costs is taken for the truth
constexpr std::size_t divergences_told = 10;
constexpr int recorded_every = 16;  // steps without a budget, once a trace is known

// ---- the limit, for all sessions of the process --------------------------------------------------------------------

struct Limit {
  std::vector<const SessionState*> open;  // sessions of the steps that are open
  Bytes reserve = 0;
};
Limit& limit() {
  static auto& one = *new Limit;
  return one;
}

void set_limit() {
  Bytes smallest = meter::unlimited;
  for (const SessionState* const session : limit().open) smallest = std::min(smallest, session->step_budget());
  meter::limit(smallest, smallest == meter::unlimited ? 0 : std::min(limit().reserve, smallest / 16));
}

void set_reserve(Bytes bytes) {
  if (limit().reserve == bytes) return;
  limit().reserve = bytes;
  set_limit();
}

Bytes largest_packed(const Observations& seen) {
  Bytes largest = 0;
  for (const auto& form : seen.forms) {
    if (form) largest = std::max(largest, meter::counted(form->bytes()));
  }
  return largest;
}

// The thread's recording is over. False: there was none, or no backward, and so nothing to remember.
bool complete_period() {
  ThreadState& here = this_thread();
  const Arbiter lock;
  std::shared_ptr<Recording> over = std::move(here.recording);
  here.recording.reset();
  if (!over) return false;
  const bool complete = over->went_back;
  if (complete) over->session->end_period(*over);
  over->end();
  Arbiter::discard_all(std::move(over));
  return complete;
}

}  // namespace

void reserve_for_packing(Bytes bytes) {
  set_reserve(std::max(limit().reserve, bytes));
}

SessionState::SessionState(SessionOptions given) : options(std::move(given)) {
  numbers_.name = options.name;
}

// ---- steps ---------------------------------------------------------------------------------------------------------

bool SessionState::would_record() const {
  return options.budget != no_limit || options.forget_everything || periods_.all().empty() ||
         since_recorded_ + 1 >= recorded_every || periods_.all().back()->given ||
         periods_.all().back()->measured < cost_measurements;
}

void SessionState::open_step() {
  ThreadState& here = this_thread();
  bool recorded = false;
  {
    const Arbiter lock;
    recorded = would_record();
    since_recorded_ = recorded ? 0 : since_recorded_ + 1;
    step_budget_ = options.budget;
    first_in_step_ = true;
    longest_.reset();
    ended_in_step_ = planned_in_step_ = 0;
    kept_.clear();
    unmetered_.clear();
    numbers_.forgotten_last_step = numbers_.packed_last_step = numbers_.packed_to_last_step = 0;
    numbers_.other_devices = 0;
    numbers_.replays = 0;
    numbers_.replay_seconds = numbers_.pack_seconds = 0;
    if (limit().open.empty()) {
      meter::mark_peak();
      limit().reserve = 0;
    }
    limit().open.push_back(this);
    set_limit();
  }
  here.step = this;
  if (recorded) {
    here.session = shared_from_this();
    watch_operators(true);
  }
  here.step_start = thread_microseconds();
}

void SessionState::close_step() noexcept {
  ThreadState& here = this_thread();
  watch_operators(false);
  watch_nodes(false);
  here.inside = 0;
  try {  // the last that was saved may have gone without backward
    if (here.recording && here.recording->is_over()) (void)complete_period();
  } catch (...) {  // out of memory: nothing is learnt from it
  }
  std::shared_ptr<Recording> unfinished = std::move(here.recording);
  here.recording.reset();
  here.session.reset();
  here.step = nullptr;
  const Arbiter lock;
  if (unfinished) unfinished->end();
  Arbiter::discard_all(std::move(unfinished));
  auto& open = limit().open;
  open.erase(std::find(open.begin(), open.end(), this));
  set_limit();
  ++numbers_.steps;
  numbers_.step_seconds = (thread_microseconds() - here.step_start) * 1e-6;
  numbers_.peak_last_step = meter::peak();
  numbers_.peak = std::max(numbers_.peak, numbers_.peak_last_step);
  numbers_.followed_plan = ended_in_step_ > 0 && planned_in_step_ == ended_in_step_;
  if (ended_in_step_ > 0) longest_of_last_step_ = longest_;
}

void SessionState::keep_step_of_this_thread() {
  auto* const mine = const_cast<SessionState*>(this_thread().step);
  limit().open.clear();
  if (mine) {
    limit().open.push_back(mine);
    this_thread().step_start = thread_microseconds();
  }
  set_limit();
}

// ---- periods -------------------------------------------------------------------------------------------------------

std::shared_ptr<Recording> SessionState::begin_region() {
  auto recording = std::make_shared<Recording>(shared_from_this(), region_recipes_);
  recording->keep_outside = true;
  return recording;
}

void SessionState::end_region(Recording& r) {
  r.end();
  if (!r.following && !r.recipes->operators.empty()) region_recipes_ = r.recipes;
}

std::shared_ptr<Recording> SessionState::begin_period(bool seen_from_the_start) {
  if (region) return begin_region();
  std::shared_ptr<Period> guess = first_in_step_ ? first_.lock() : nullptr;
  if (const auto last = last_.lock(); !first_in_step_ && last) guess = last->successor.lock();
  if (!guess && !periods_.all().empty()) guess = periods_.all().back();
  if (!seen_from_the_start) guess.reset();
  if (guess && guess->record_anew) {
    guess->record_anew = false;
    guess.reset();
  }
  auto recording = std::make_shared<Recording>(shared_from_this(), guess ? guess->recipes : nullptr);
  Recording& r = *recording;
  r.keep_outside = step_budget_ != no_limit || options.forget_everything || plan_given_;
  if (guess) {
    r.period = guess;
    r.expected = first_in_step_;
    r.costs = guess->costs;
    r.measuring = guess->measured < cost_measurements;
    r.executor = executor_for(*guess);
    r.measuring_other = r.executor != nullptr;
    plan_if_worth_it(guess, step_budget_);
    set_reserve(r.executor ? 0 : largest_packed(guess->seen));
  } else {
    r.observing = r.measuring = r.measuring_other = true;
  }
  if (r.measuring_other) (void)meter::take_other_peak();
  return recording;
}

void SessionState::end_period(Recording& r) {
  if (region) return;
  ++ended_in_step_;
  if (r.following && r.period) {
    learn_from(r);
  } else if (r.observing && !r.unplannable && !r.seen.needs.empty()) {
    remember(r);
  }
  if (!r.period) {
    last_.reset();
    first_in_step_ = false;
    return;
  }
  if (first_in_step_) {
    first_ = r.period;
  } else if (const auto last = last_.lock()) {
    last->successor = r.period;
  }
  last_ = r.period;
  first_in_step_ = false;
  const auto longest = longest_.lock();
  if (!longest || longest->recipes->operators.size() < r.recipes->operators.size()) longest_ = r.period;
  plan_if_worth_it(r.period, step_budget_);
}

// A period that nobody has seen before.
void SessionState::remember(Recording& r) {
  auto period = std::make_shared<Period>();
  period->recipes = r.recipes;
  period->seen = std::move(r.seen);
  period->seen.needs.resize(period->seen.moments.size());
  period->seen.event_names.resize(period->seen.moments.size());
  period->costs = r.costs;
  period->other = r.other;
  period->measured = 1;
  periods_.add(period, bytes_of_periods + (step_budget_ == no_limit ? 0 : step_budget_ / 16));
  ++numbers_.traces;
  r.period = std::move(period);
}

void SessionState::learn_from(Recording& r) {
  Period& period = *r.period;
  if (r.next != static_cast<Id>(r.recipes->operators.size())) {  // it ended before its time
    count_divergence("the step ended after operator " + std::to_string(r.next) + " of " +
                     std::to_string(r.recipes->operators.size()));
    return;
  }
  periods_.met_again(period);
  if (r.measuring) {
    period.costs = r.costs;
    for (ObservedMoment& moment : period.seen.moments) {
      if (moment.op != no_operator) moment.cost = period.costs[moment.op];
    }
    ++period.measured;
  }
  if (!r.executor) return;
  ++planned_in_step_;
  if (r.other.size() != period.other.size()) return;
  const std::vector<Bytes>& room = r.executor->schedule().room;
  for (std::size_t m = 0; m < r.other.size(); ++m) {
    const OtherBytes &seen = r.other[m], &planned = period.other[m];
    period.outgrown |= std::max(seen.between - planned.between, seen.within - planned.within) > room[m];
  }
  if (period.outgrown) period.other = r.other;
}

bool SessionState::any_alternative(Recording& r,
                                   const std::function<bool(const std::shared_ptr<Period>&)>& accepted) const {
  if (!r.period || r.moment != r.next || r.live.size() != r.recipes->values.size()) return false;
  const std::shared_ptr<Period> from = r.period;
  for (const auto& [other, common] : from->common) {
    const auto period = other.lock();
    if (period && common >= r.next && accepted(period)) return true;
  }
  return false;
}

std::unique_ptr<Executor> SessionState::executor_for(const Period& period) const {
  // A plan counts on all bytes: beside another step, only the online policy is safe.
  if (!period.schedule || options.forget_everything || limit().open.size() != 1) return nullptr;
  if (step_budget_ == no_limit && !period.given) return nullptr;
  if (period.schedule->peak > step_budget_ || (period.outgrown && !period.given)) return nullptr;
  return std::make_unique<Executor>(period.schedule);
}

// ---- planning ------------------------------------------------------------------------------------------------------

void SessionState::plan_for(Bytes budget) {
  for (const auto& period : periods_.all()) plan_if_worth_it(period, budget);
}

void SessionState::plan_if_worth_it(const std::shared_ptr<Period>& period, Bytes budget) {
  if (budget == no_limit || options.planning_time.count() <= 0 || options.forget_everything) return;
  if (period->planning || period->given) return;
  if (!period->schedule && period->uses == 0 && periods_.new_in_a_row() > many_new) return;
  const bool for_this_budget = period->budget == budget && (period->schedule || period->infeasible);
  const bool costs_improved = period->planned_with < cost_measurements && period->measured >= cost_measurements;
  if (for_this_budget && !period->outgrown && !costs_improved) return;
  if (jobs_ >= most_jobs) return;  // it is asked for again when it is met again
  period->planning = true;
  ++jobs_;
  if (!options.plans.empty() && !period->schedule && !period->infeasible) {  // a file is read at once
    plan(period, budget, true, nullptr);
    if (period->schedule) return;
    period->planning = true;
    ++jobs_;
  }
  struct Job final : PlanningJob {
    std::weak_ptr<SessionState> session;
    std::weak_ptr<Period> period;  // known to the session, or gone
    Bytes budget = 0;
    bool still_wanted() override {
      const auto known = period.lock();
      const Arbiter lock;
      return known && known->planning;  // not if it is a second time, after a fork right at the end of the first
    }
    void run() override {
      const auto of = session.lock();
      const auto known = period.lock();
      if (!of || !known) return dropped();
      of->plan(known, budget, false, this);
    }
    void dropped() noexcept override {
      const auto of = session.lock();
      const auto known = period.lock();
      const Arbiter lock;
      if (of && (!known || std::exchange(known->planning, false))) --of->jobs_;
    }
  };
  auto job = std::make_shared<Job>();
  job->session = weak_from_this();
  job->period = period;
  job->budget = budget;
  plan_later(std::move(job));
}

void SessionState::plan(const std::shared_ptr<Period>& period, Bytes budget, bool only_from_folder, PlanningJob* job) {
  Period known;
  {
    const Arbiter lock;
    known = *period;
    period->outgrown = false;
    if (job) running_ = job;
  }
  std::optional<Bridge> bridge;
  PlanResult result;
  std::shared_ptr<const Script> schedule;
  std::string failure;
  try {
    bridge.emplace(known, options.pack);
    PlanOptions planning;
    planning.budget = budget;
    planning.time_limit = options.planning_time;
    planning.cancel = job ? &job->cancelled() : nullptr;
    planning.start = known.plan;
    if (const auto stored = read_from_folder(options.plans, bridge->trace(), budget)) {
      result.status = PlanStatus::feasible;
      result.plan = *stored;
      result.simulation = simulate(bridge->trace(), *stored);
    } else if (!only_from_folder) {
      result = make_plan(bridge->trace(), planning);
      if (result.has_plan()) write_to_folder(options.plans, bridge->trace(), result.plan);
    }
    if (result.has_plan()) {
      schedule = bridge->schedule(result.plan, simulate(bridge->trace(), result.plan), result.gap());
    }
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const Arbiter lock;
  if (job) running_ = nullptr;
  period->planning = false;
  --jobs_;
  if (only_from_folder && !result.has_plan()) return;
  period->budget = budget;
  period->planned_with = known.measured;
  if (result.keep_everything_peak > 0) period->kept_peak = result.keep_everything_peak;
  if (!failure.empty()) {
    count_divergence("a trace could not be planned: " + failure);
    period->infeasible = true;
    return;
  }
  if (period->given) return;
  period->infeasible = !result.has_plan();
  period->smallest_feasible = result.smallest_feasible;
  period->schedule = std::move(schedule);
  if (result.has_plan()) period->plan = std::move(result.plan);
}

void SessionState::give_up_planning() {
  const Arbiter lock;
  if (running_) running_->cancel();
}

void SessionState::wait_for_plans() {
  wait_for_planning();
}

void SessionState::use(Plan plan) {
  Period known;
  std::shared_ptr<Period> period;
  {
    const Arbiter lock;
    period = longest_of_last_step();
    if (!period)
      throw BadInput("", "plan", "no step has been recorded from its first operator to the end of backward yet");
    known = *period;
  }
  const Bridge bridge(known, options.pack);
  const Simulation simulation = simulate(bridge.trace(), plan);
  if (!simulation.valid()) throw BadInput("", "plan", simulation.broken->sentence);
  auto schedule = bridge.schedule(plan, simulation, 0);
  const Arbiter lock;
  period->schedule = std::move(schedule);
  period->plan = std::move(plan);
  period->given = plan_given_ = true;
}

// ---- policy --------------------------------------------------------------------------------------------------------

void SessionState::name(const at::Tensor& parameter, const std::string& module) {
  if (!parameter.defined() || !parameter.has_storage()) return;
  modules_[libtorch::storage_of(parameter)] = &*module_names_.insert(module).first;
}

const std::string* SessionState::module_of(const c10::StorageImpl* storage) const {
  const auto found = modules_.find(storage);
  return found == modules_.end() ? nullptr : found->second;
}

Choice SessionState::choose(const PolicyOperator& op) try {
  Arbiter::expect_free("the policy is asked");
  return options.policy(op);
} catch (const std::exception& error) {
  const Arbiter lock;
  count_divergence("the policy failed on " + std::string(op.name) + ": " + error.what());
  return Choice::decide;
}

// ---- exactness -----------------------------------------------------------------------------------------------------

bool SessionState::verifies(const Recipes& recipes, Id value) const {
  if (options.verify == Verify::never || static_cast<std::size_t>(value) >= recipes.values.size()) return false;
  const RecordedValue& recorded = recipes.values[value];
  return !recorded.scratch && (options.verify == Verify::always || !recorded.verified);
}

const char* SessionState::distrusted(const OperatorInfo& info, Id op) const {
  return distrusted_.count({&info, op}) != 0 ? "verify found that it does not give the same bits again" : nullptr;
}

void SessionState::distrust(Recording& r, Id op) {
  Recipe& recipe = r.recipes->operators[op];
  distrusted_.emplace(recipe.info, op);
  recipe.obstacle = distrusted(*recipe.info, op);
  for (const Output& output : r.recipes->outputs_of(op)) r.recipes->values[output.value].maker = no_operator;
  if (const auto period = period_of(*r.recipes)) {
    period->schedule.reset();
    period->plan.reset();
    period->given = false;
    period->outgrown = true;
  }
}

// ---- counting ------------------------------------------------------------------------------------------------------

void SessionState::count_packed(Bytes plain, Bytes packed) {
  numbers_.packed_last_step += plain;
  numbers_.packed_to_last_step += packed;
}
void SessionState::count_packing(double microseconds) {
  const Arbiter lock;
  numbers_.pack_seconds += microseconds * 1e-6;
}
void SessionState::count_replays(std::int64_t operators, double microseconds) {
  const Arbiter lock;
  numbers_.replays += operators;
  numbers_.replay_seconds += microseconds * 1e-6;
}
void SessionState::count_kept(const Recipes& recipes, Id op, Bytes bytes) {
  const Recipe& recipe = recipes.operators[op];
  KeptOperator& kept = kept_[recipe.info->name];
  if (kept.values++ == 0) {
    kept.op = recipe.info->name;
    kept.why = recipe.obstacle ? recipe.obstacle : "its result is not in memory of LibTorch's allocator";
  }
  kept.bytes += bytes;
}
void SessionState::count_divergence(const std::string& why) {
  ++numbers_.divergences;
  auto& told = numbers_.last_divergences;
  if (told.size() == divergences_told) told.erase(told.begin());
  told.push_back({numbers_.steps + 1, why});
}
void SessionState::met_on_other_device(Bytes bytes) {
  const Arbiter lock;
  numbers_.other_devices += bytes;
}
void SessionState::met_unmetered(Bytes bytes, const void* storage) {
  unmetered_[storage] = bytes;
}

std::shared_ptr<Period> SessionState::longest_of_last_step() const {
  const auto longest = longest_.lock();
  return longest ? longest : longest_of_last_step_.lock();
}

std::optional<Bytes> SessionState::smallest_feasible() const {
  for (auto period = periods_.all().rbegin(); period != periods_.all().rend(); ++period) {
    if ((*period)->infeasible) return (*period)->smallest_feasible;
  }
  return std::nullopt;
}

Summary SessionState::summary() const {
  const Arbiter lock;
  Summary summary = numbers_;
  if (options.budget != no_limit) summary.budget = options.budget;
  summary.live = meter::live();
  summary.resident = meter::resident();
  for (const auto& [storage, bytes] : unmetered_) summary.before_meter += bytes;
  for (const auto& [name, kept] : kept_) summary.kept.push_back(kept);
  std::stable_sort(summary.kept.begin(), summary.kept.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (std::find(limit().open.begin(), limit().open.end(), this) != limit().open.end()) {
    summary.peak_last_step = meter::peak();
    summary.peak = std::max(summary.peak, summary.peak_last_step);
  }
  summary.planning = jobs_ > 0;
  summary.smallest_feasible = smallest_feasible();
  for (const auto& period : periods_.all()) summary.plans += period->schedule != nullptr ? 1 : 0;
  const auto period = longest_of_last_step();
  if (!period) return summary;
  if (!period->kept_peak) {
    if (const auto kept = trace()) period->kept_peak = simulate(*kept, keep_everything(*kept), {false, false}).peak;
  }
  summary.peak_if_kept = period->kept_peak;
  if (const auto& schedule = period->schedule) {
    summary.promised_peak = schedule->peak;
    summary.promised_overhead = schedule->plain_cost > 0 ? schedule->added_cost / schedule->plain_cost : 0;
    summary.gap = schedule->gap;
  }
  return summary;
}

std::optional<Plan> SessionState::plan() const {
  const Arbiter lock;
  const auto period = longest_of_last_step();
  return period && period->schedule ? period->plan : std::nullopt;
}

std::optional<Trace> SessionState::trace() const {
  const Arbiter lock;
  const auto period = longest_of_last_step();
  if (!period) return std::nullopt;
  try {
    return Bridge(*period, options.pack).trace();
  } catch (const BadInput&) {  // something happened in it that a trace cannot say; it is not planned either
    return std::nullopt;
  }
}

// ---- periods, on the thread of a step ------------------------------------------------------------------------------

void begin_period_if_over() {
  ThreadState& here = this_thread();
  if (here.recording && (here.recording->in_backward || !here.recording->is_over())) return;
  end_period();
  if (!here.session) return;  // the next step has begun, and is not recorded
  const Arbiter lock;
  here.recording = here.session->begin_period();
}

void end_period() {
  if (complete_period()) automatic::end_step();
}

}  // namespace reprise::internal
