#include "torch/session/session_state.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/memory/place.h"
#include "torch/plans/bridge.h"
#include "torch/values/open_steps.h"

namespace reprise::internal {
namespace {

constexpr int recorded_every = 16;  // steps without a budget, once a trace is known

// None: something happened in the period that a trace cannot say. It is not planned either.
std::optional<Trace> trace_of(const Period& period, const OfferedTiers& tiers) try {
  return Bridge(period, tiers).trace();
} catch (const BadInput&) {
  return std::nullopt;
}

// With the other bytes that were seen, if nothing had been forgotten.
std::optional<Bytes> kept_peak(const Period& period, const LongestPeriod& longest) {
  if (longest.kept_peak) return longest.kept_peak;
  Period seen = period;
  seen.other = longest.other;
  const auto trace = trace_of(seen, false);
  if (!trace) return std::nullopt;
  longest.kept_peak = simulate(*trace, keep_everything(*trace), {.record_live = false, .check_budget = false}).peak;
  return longest.kept_peak;
}

bool forgot_nothing(const Summary& summary) {
  return summary.forgotten_last_step == 0 && summary.packed_last_step == 0 && summary.disk_put_last_step == 0 &&
         summary.host_put_last_step == 0 && summary.replays == 0;
}

}  // namespace

SessionState::SessionState(SessionOptions options)
    : options_(std::move(options)),
      has_place_(!names_no_place(options_) || !options_.disk.folder.empty()),
      rules_(std::make_shared<Rules>(options_)),
      jobs_(std::make_shared<PlanningJobs>(rules_, PlanningBudget(options_.planning_share, options_.planning_time),
                                           options_.plans)),
      periods_(rules_, jobs_->budget()) {
  for (const auto& [place, budget] : rules_->places()) budgets_.push_back(budget);
  jobs_->read_advice_for(budget());
}

// ---- places --------------------------------------------------------------------------------------------------------

void SessionState::budget(PlaceIndex place, Bytes budget) {
  const bool is_new = std::exchange(budgets_[place], budget) != budget;
  if (place != 0) return;
  if (is_new) {
    jobs_->budget().renew_credit();
    jobs_->read_advice_for(budget);
  }
  for (const auto& period : periods_.known().all()) ask_for_plan(period, budget);
}

void SessionState::look_for_place() {
  if (!has_place() && accelerators_in_use().empty()) has_place_.store(true, std::memory_order_release);
}

void SessionState::look_at_places() const {
  std::vector<const Place*> accelerators;
  {
    const Arbiter lock;
    for (const auto& [place, budget] : rules_->places()) {
      if (!place->is_cpu()) accelerators.push_back(place);
    }
  }
  for (const Place* const place : accelerators) place->look();
}

void SessionState::meet_parameter(c10::Device device) {
  const Place* place = &Places::of_process().cpu();
  std::string problem;
  try {
    place = &Places::of_process().at(device.str());
  } catch (const BadOption& error) {
    problem = "there are parameters on '" + device.str() + "', where it cannot be held (" + error.what() +
              "). Option device = \"cpu\" limits the bytes of the CPU";
  }
  if (!has_place()) place->look();
  const Arbiter lock;
  if (!has_place()) {
    OpenSteps::of_process().settle(*rules_, *place, budgets_);
    has_place_.store(true, std::memory_order_release);
  } else if (problem.empty() && place != &rules_->place()) {
    problem = "there are parameters on '" + rules_->place().name() + "' and on '" + device.str() +
              "'. Name the place that it limits by option device, or limit both by option budgets";
  }
  if (problem_.empty()) problem_ = std::move(problem);
}

void SessionState::check_places() const {
  const Arbiter lock;
  if (!problem_.empty() && budget() != no_limit) {
    throw BadOption("[session] option budget is " + std::to_string(budget()) + ", and no device is named: " + problem_);
  }
  for (std::size_t i = 0; i < budgets_.size(); ++i) check_budget(*rules_->places()[i].place, budgets_[i]);
}

PlaceIndex SessionState::place_for(const std::string& device, Bytes budget) const {
  const Place* const named = device.empty() ? nullptr : &Places::of_process().at(device);
  const Arbiter lock;
  const Place& place = named ? *named : rules_->place();
  check_budget(place, budget);
  const PlaceIndex index = rules_->place_of(place.meter());
  if (index != nowhere) return index;
  throw BadOption("[session] a budget of " + std::to_string(budget) + " for '" + device +
                  "': it is no place of this session. Name it in option budgets");
}

// ---- steps ---------------------------------------------------------------------------------------------------------

bool SessionState::would_record() const {
  const bool limited = std::any_of(budgets_.begin(), budgets_.end(), [](Bytes budget) { return budget != no_limit; });
  return limited || options_.forget_everything || since_recorded_ + 1 >= recorded_every || periods_.wants_recording();
}

bool SessionState::begin_step() {
  is_new_ = false;
  const bool recorded = would_record();
  since_recorded_ = recorded ? 0 : since_recorded_ + 1;
  rules_->budgets(has_place() ? budgets_ : std::vector<Bytes>{no_limit});
  rules_->counters().step_begins();
  if (rules_->disk()) disk_before_ = rules_->disk()->totals();
  if (rules_->host()) host_before_ = rules_->host()->totals();
  periods_.begin_step();
  OpenSteps::of_process().open(*rules_);
  see_open_steps();
  return recorded;
}

void SessionState::end_step(double seconds) {
  see_open_steps();
  OpenSteps::of_process().close(*rules_);
  std::vector<Bytes> peaks;
  for (const auto& [place, budget] : rules_->places()) peaks.push_back(place->meter().peak());
  const double work = rules_->accelerator() ? periods_.seconds_of_device() : seconds;
  rules_->counters().step_ends(work, peaks, periods_.followed_plans());
  jobs_->budget().trained(seconds);
  periods_.end_step();
}

void SessionState::see_open_steps() {
  constexpr int lately = 32;  // beginnings and ends of steps
  const int open = OpenSteps::of_process().count(rules_->place());
  if (open < side_by_side_ && ++since_so_many_ < lately) return;
  side_by_side_ = open;
  since_so_many_ = 0;
}

// ---- periods -------------------------------------------------------------------------------------------------------

void SessionState::ask_device() {
  if (!rules_->accelerator()) return;
  std::vector<std::shared_ptr<LateCosts>> late;
  {
    const Arbiter lock;
    late = periods_.late_costs_of_next();
  }
  for (const auto& one : late) {
    auto costs = one->read();
    if (!costs) return;
    const Arbiter lock;
    one->tell(std::move(*costs));
  }
}

std::shared_ptr<Recording> SessionState::begin_period() {
  auto recording = periods_.begin();
  if (const auto& period = recording->period()) ask_for_plan(period, rules_->budget());
  return recording;
}

std::shared_ptr<Recording> SessionState::begin_period_in_the_middle() {
  return periods_.begin_in_the_middle();
}

void SessionState::end_period(Recording& recording) {
  if (const auto period = periods_.end(recording)) ask_for_plan(period, rules_->budget());
}

// ---- planning ------------------------------------------------------------------------------------------------------

void SessionState::ask_for_plan(const std::shared_ptr<Period>& period, Bytes budget) {
  jobs_->ask_for(period, planned_share(budget), periods_.known());
}

// It stays what it is where little has changed, and the plans with it.
Bytes SessionState::planned_share(Bytes budget) {
  constexpr Bytes little = 32;  // a part of the budget
  const Bytes share = OpenSteps::of_process().share(rules_->place(), budget, side_by_side_);
  if (share == budget || share_ > budget || std::abs(share - share_) > budget / little) share_ = share;
  return share_;
}

void SessionState::follow(Plan plan) {
  Period known;
  std::shared_ptr<Period> period;
  {
    const Arbiter lock;
    period = periods_.longest();
    if (!period)
      throw BadInput("", "plan", "no step has been recorded from its first operator to the end of backward yet");
    known = *period;
  }
  const Bridge bridge(known, rules_->tiers());
  const Simulation simulation = simulate(bridge.trace(), plan);
  if (!simulation.valid()) throw BadInput("", "plan", simulation.broken->sentence);
  auto script = bridge.script(plan, simulation, 0);
  const Arbiter lock;
  period->use(std::move(script), std::move(plan));
  period->given = true;
  rules_->allow_forgetting();
}

void SessionState::announce(std::vector<AnnouncedPlan> plans, double seconds) {
  periods_.announce(std::move(plans));
  jobs_->budget().paid(seconds);
}

// ---- the outcome ---------------------------------------------------------------------------------------------------

void SessionState::add_places(Summary& summary) const {
  const bool open = OpenSteps::of_process().any_of(*rules_);
  for (std::size_t i = 0; i < summary.places.size(); ++i) {
    PlaceSummary& one = summary.places[i];
    const Place& place = *rules_->places()[i].place;
    one.device = place.name();
    if (budgets_[i] != no_limit) one.budget = budgets_[i];
    one.live = place.meter().live();
    if (!open) continue;
    one.peak_last_step = place.meter().peak();
    one.peak = std::max(one.peak, one.peak_last_step);
  }
  const PlaceSummary& first = summary.places.front();
  summary.device = first.device;
  summary.budget = first.budget;
  summary.live = first.live;
  summary.peak_last_step = first.peak_last_step;
  summary.peak = first.peak;
}

Summary SessionState::summary() const {
  const Arbiter lock;
  Summary summary = rules_->counters().summary();
  add_places(summary);
  summary.resident = meter::resident();
  if (rules_->disk()) rules_->disk()->totals().tell(summary, disk_before_);
  if (rules_->host()) rules_->host()->totals().tell(summary, host_before_);
  summary.planning = jobs_->under_way();
  summary.planning_seconds = jobs_->budget().cost();
  summary.planning_saved_seconds = jobs_->budget().saved();
  summary.smallest_feasible = periods_.smallest().feasible;
  for (const auto& period : periods_.known().all()) summary.plans += period->script != nullptr ? 1 : 0;
  const auto period = periods_.longest();
  if (!period) return summary;
  // What is live outside of the trace, as in an optimizer, is a part of the step, too.
  const LongestPeriod& longest = periods_.seen_of_longest();
  const std::optional<Bytes> kept = forgot_nothing(summary) ? summary.peak_last_step : kept_peak(*period, longest);
  if (kept) summary.peak_if_kept = std::max({*kept, summary.peak_last_step, summary.peak_if_kept.value_or(0)});
  if (const auto& script = longest.script ? longest.script : period->script) {
    summary.promised_peak = std::max(script->peak, script->budget - script->spare(longest.other));
    summary.promised_overhead = script->plain_cost > 0 ? script->added_cost / script->plain_cost : 0;
    summary.gap = script->gap;
  }
  return summary;
}

std::optional<Plan> SessionState::plan() const {
  const Arbiter lock;
  const auto period = periods_.longest();
  return period && period->script ? period->plan : std::nullopt;
}

std::optional<Trace> SessionState::trace() const {
  const Arbiter lock;
  const auto period = periods_.longest();
  auto trace = period ? trace_of(*period, rules_->tiers()) : std::nullopt;
  // Whose bytes are in it, for reports.
  if (trace && rules_->accelerator()) trace->name = options_.name + " on " + rules_->place().name();
  return trace;
}

}  // namespace reprise::internal
