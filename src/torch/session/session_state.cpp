#include "torch/session/session_state.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/counted_device.h"
#include "torch/memory/meter.h"
#include "torch/plans/plan_lowering.h"
#include "torch/values/open_steps.h"

namespace reprise::internal {
namespace {

constexpr int recorded_every = 16;  // steps without a budget, once a trace is known

// None: something happened in the pass that a trace cannot say. It is not planned either.
std::optional<Trace> trace_of(const RecordedPass& pass, const OfferedTiers& tiers) try {
  return build_trace(pass, tiers).trace;
} catch (const BadInput&) {
  return std::nullopt;
}

// With the other bytes that were seen, if nothing had been evicted.
std::optional<Bytes> kept_peak(const RecordedPass& pass, const LongestPass& longest) {
  if (longest.kept_peak) return longest.kept_peak;
  RecordedPass seen = pass;
  seen.profile.other = longest.other;
  const auto trace = trace_of(seen, false);
  if (!trace) return std::nullopt;
  longest.kept_peak = simulate(*trace, keep_everything(*trace), {.record_live = false, .check_budget = false}).peak;
  return longest.kept_peak;
}

bool evicted_nothing(const Summary& summary) {
  return summary.evicted_last_step() == 0 && summary.packed_last_step == 0 && summary.disk_put_last_step == 0 &&
         summary.host_put_last_step == 0 && summary.replays == 0;
}

bool has_share(const std::vector<Budget>& budgets) {
  return std::any_of(budgets.begin(), budgets.end(), [](const Budget& one) { return one.is_share(); });
}

}  // namespace

SessionState::SessionState(SessionOptions options)
    : options_(std::move(options)),
      has_device_(!names_no_device(options_) || !options_.disk.folder.empty()),
      context_(std::make_shared<RecordingContext>(options_)),
      jobs_(std::make_shared<PlanningJobs>(context_, PlanningBudget(options_.planning_share, options_.planning_time),
                                           options_.plans)),
      passes_(context_, jobs_->budget()) {
  for (const auto& [device, budget] : context_->devices()) budgets_.push_back(budget);
  written_ = budgets_of(options_);
  if (has_share(written_)) context_->set_share(RecordingContext::Share::measuring);
  jobs_->read_advice_for(budget());
}

// ---- devices --------------------------------------------------------------------------------------------------------

void SessionState::budget(DeviceOrdinal device, const Budget& given) {
  written_[device] = given;
  using Share = RecordingContext::Share;
  context_->set_share(has_share(written_) ? Share::measuring : Share::none);
  if (given.is_share()) measured_steps_ = 0;
  const Bytes budget = given.bytes();
  const bool is_new = std::exchange(budgets_[device], budget) != budget;
  if (device != 0) return;
  if (is_new) {
    jobs_->budget().renew_credit();
    jobs_->read_advice_for(budget);
  }
  for (const auto& pass : passes_.known().all()) ask_for_plan(pass, budget);
}

void SessionState::measure_shares() noexcept try {
  constexpr int plain_steps = 2;  // the state of most optimizers comes with the first
  Bytes most_on_cpu = no_limit;
  {
    const Arbiter lock;
    if (std::exchange(step_failed_, false) || !has_share(written_) || ++measured_steps_ < plain_steps) return;
    const Summary summary = context_->counters().summary();
    for (std::size_t i = 0; i < written_.size(); ++i) {
      if (!written_[i].is_share()) continue;
      const Bytes bytes = written_[i].bytes_at(summary.devices[i].peak_last_step);
      budget(static_cast<DeviceOrdinal>(i), bytes);
      if (context_->devices()[i].device->is_cpu()) most_on_cpu = bytes;
    }
    context_->set_share(RecordingContext::Share::measured);
  }
  if (most_on_cpu != no_limit) meter::shrink(most_on_cpu);
} catch (...) {  // out of memory: the next step measures again
}

void SessionState::step_failed() {
  const Arbiter lock;
  step_failed_ = true;
}

void SessionState::look_for_device() {
  if (!has_device() && accelerators_in_use().empty()) has_device_.store(true, std::memory_order_release);
}

void SessionState::look_at_devices() const {
  std::vector<const CountedDevice*> accelerators;
  {
    const Arbiter lock;
    for (const auto& [device, budget] : context_->devices()) {
      if (!device->is_cpu()) accelerators.push_back(device);
    }
  }
  for (const CountedDevice* const device : accelerators) device->look();
}

void SessionState::meet_parameter(c10::Device device) {
  const CountedDevice* counted = &CountedDevices::of_process().cpu();
  std::string problem;
  try {
    counted = &CountedDevices::of_process().at(device.str());
  } catch (const BadOption& error) {
    problem = "there are parameters on '" + device.str() + "', where it cannot be held (" + error.what() +
              "). Option device = \"cpu\" limits the bytes of the CPU";
  }
  if (!has_device()) counted->look();
  const Arbiter lock;
  if (!has_device()) {
    OpenSteps::of_process().settle(*context_, *counted, budgets_);
    has_device_.store(true, std::memory_order_release);
  } else if (problem.empty() && counted != &context_->device()) {
    problem = "there are parameters on '" + context_->device().name() + "' and on '" + device.str() +
              "'. Name the device that it limits by option device, or limit both by option budgets";
  }
  if (problem_.empty()) problem_ = std::move(problem);
}

void SessionState::check_devices() const {
  const Arbiter lock;
  if (!problem_.empty() && budget() != no_limit) {
    throw BadOption("[session] option budget is " + std::to_string(budget()) + ", and no device is named: " + problem_);
  }
  for (std::size_t i = 0; i < budgets_.size(); ++i) check_budget(*context_->devices()[i].device, budgets_[i]);
}

DeviceOrdinal SessionState::device_for(const std::string& device, const Budget& budget) const {
  const CountedDevice* const named = device.empty() ? nullptr : &CountedDevices::of_process().at(device);
  const Arbiter lock;
  const CountedDevice& counted = named ? *named : context_->device();
  check_budget(counted, budget);
  const DeviceOrdinal index = context_->device_of(counted.meter());
  if (index != untracked) return index;
  throw BadOption("[session] a budget of " + budget.text() + " for '" + device +
                  "': it is no device of this session. Name it in option budgets");
}

// ---- steps ---------------------------------------------------------------------------------------------------------

bool SessionState::would_record() const {
  const bool limited = std::any_of(budgets_.begin(), budgets_.end(), [](Bytes budget) { return budget != no_limit; });
  return limited || options_.evict_everything || since_recorded_ + 1 >= recorded_every || passes_.wants_recording();
}

bool SessionState::begin_step() {
  is_new_ = false;
  const bool recorded = would_record();
  since_recorded_ = recorded ? 0 : since_recorded_ + 1;
  context_->budgets(has_device() ? budgets_ : std::vector<Bytes>{no_limit});
  context_->counters().step_begins();
  if (context_->disk()) disk_before_ = context_->disk()->totals();
  if (context_->host()) host_before_ = context_->host()->totals();
  passes_.begin_step();
  OpenSteps::of_process().open(*context_);
  see_open_steps();
  return recorded;
}

void SessionState::end_step(double seconds) {
  see_open_steps();
  OpenSteps::of_process().close(*context_);
  std::vector<Bytes> peaks;
  for (const auto& [device, budget] : context_->devices()) peaks.push_back(device->meter().peak());
  const double work = context_->accelerator() ? passes_.seconds_of_device() : seconds;
  context_->counters().step_ends(work, peaks, passes_.followed_plans());
  jobs_->budget().trained(seconds);
  passes_.end_step();
}

void SessionState::see_open_steps() {
  constexpr int lately = 32;  // beginnings and ends of steps
  const int open = OpenSteps::of_process().count(context_->device());
  if (open < side_by_side_ && ++since_so_many_ < lately) return;
  side_by_side_ = open;
  since_so_many_ = 0;
}

// ---- passes -------------------------------------------------------------------------------------------------------

void SessionState::ask_device() {
  if (!context_->accelerator()) return;
  std::vector<std::shared_ptr<LateCosts>> late;
  {
    const Arbiter lock;
    late = passes_.late_costs_of_next();
  }
  for (const auto& one : late) {
    auto costs = one->read();
    if (!costs) return;
    const Arbiter lock;
    one->set_costs(std::move(*costs));
  }
}

std::shared_ptr<Recording> SessionState::begin_pass() {
  auto recording = passes_.begin();
  if (const auto& pass = recording->pass()) ask_for_plan(pass, context_->budget());
  return recording;
}

std::shared_ptr<Recording> SessionState::begin_pass_in_the_middle() {
  return passes_.begin_in_the_middle();
}

void SessionState::end_pass(Recording& recording) {
  if (const auto pass = passes_.end(recording)) ask_for_plan(pass, context_->budget());
}

// ---- planning ------------------------------------------------------------------------------------------------------

void SessionState::ask_for_plan(const std::shared_ptr<RecordedPass>& pass, Bytes budget) {
  jobs_->ask_for(pass, planned_share(budget), passes_.known());
}

// It stays what it is where little has changed, and the plans with it.
Bytes SessionState::planned_share(Bytes budget) {
  constexpr Bytes little = 32;  // a part of the budget
  const Bytes share = OpenSteps::of_process().share(context_->device(), budget, side_by_side_);
  if (share == budget || share_ > budget || std::abs(share - share_) > budget / little) share_ = share;
  return share_;
}

void SessionState::follow(Plan plan) {
  RecordedPass known;
  std::shared_ptr<RecordedPass> pass;
  {
    const Arbiter lock;
    pass = passes_.longest();
    if (!pass)
      throw BadInput("", "plan", "no step has been recorded from its first operator to the end of backward yet");
    known = *pass;
  }
  const PassTrace traced = build_trace(known, context_->tiers());
  const Simulation simulation = simulate(traced.trace, plan);
  if (!simulation.valid()) throw BadInput("", "plan", simulation.broken->sentence);
  auto executable = lower_plan(known, traced, plan, simulation, 0);
  const Arbiter lock;
  pass->use(std::move(executable), std::move(plan));
  pass->given = true;
  context_->allow_evicting();
}

void SessionState::announce(std::vector<AnnouncedPlan> plans, double seconds) {
  passes_.announce(std::move(plans));
  jobs_->budget().paid(seconds);
}

// ---- the outcome ---------------------------------------------------------------------------------------------------

void SessionState::add_devices(Summary& summary) const {
  const bool open = OpenSteps::of_process().any_of(*context_);
  for (std::size_t i = 0; i < summary.devices.size(); ++i) {
    DeviceSummary& one = summary.devices[i];
    const CountedDevice& device = *context_->devices()[i].device;
    one.device = device.name();
    if (budgets_[i] != no_limit) one.budget = budgets_[i];
    one.live = device.meter().live();
    if (!open) continue;
    one.peak_last_step = device.meter().peak();
    one.peak = std::max(one.peak, one.peak_last_step);
  }
}

Summary SessionState::summary() const {
  const Arbiter lock;
  Summary summary = context_->counters().summary();
  add_devices(summary);
  summary.resident = meter::resident();
  if (context_->disk()) context_->disk()->report(summary, disk_before_);
  if (context_->host()) context_->host()->report(summary, host_before_);
  summary.planning = jobs_->under_way();
  summary.planning_seconds = jobs_->budget().cost();
  summary.planning_saved_seconds = jobs_->budget().saved();
  summary.smallest_feasible = passes_.smallest().feasible;
  for (const auto& pass : passes_.known().all()) summary.plans += pass->executable != nullptr ? 1 : 0;
  const auto pass = passes_.longest();
  if (!pass) return summary;
  // What is live outside of the trace, as in an optimizer, is a part of the step, too.
  const LongestPass& longest = passes_.seen_of_longest();
  const std::optional<Bytes> kept = evicted_nothing(summary) ? summary.peak_last_step() : kept_peak(*pass, longest);
  if (kept) summary.peak_if_kept = std::max({*kept, summary.peak_last_step(), summary.peak_if_kept.value_or(0)});
  if (const auto& executable = longest.executable ? longest.executable : pass->executable) {
    summary.promised_peak = std::max(executable->peak, executable->budget - executable->spare(longest.other));
    summary.promised_overhead = executable->plain_cost > 0 ? executable->added_cost / executable->plain_cost : 0;
    summary.gap = executable->gap;
  }
  return summary;
}

std::optional<Plan> SessionState::plan() const {
  const Arbiter lock;
  const auto pass = passes_.longest();
  return pass && pass->executable ? pass->plan : std::nullopt;
}

std::optional<Trace> SessionState::trace() const {
  const Arbiter lock;
  const auto pass = passes_.longest();
  auto trace = pass ? trace_of(*pass, context_->tiers()) : std::nullopt;
  // Whose bytes are in it, for reports.
  if (trace && context_->accelerator()) trace->name = options_.name + " on " + context_->device().name();
  return trace;
}

}  // namespace reprise::internal
