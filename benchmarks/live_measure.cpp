#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "bench_live.h"
#include "reprise/trace/amount.h"
#include "torch/memory/meter.h"
#include "training_device.h"
#include "training_sides.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

constexpr int least_repetitions = 5;
constexpr double close_enough = 0.03;  // the quartiles of the ratio to each other

void take_ground(const LiveSettings& settings, Bytes level, Bytes plain_peak, LiveReport& report) {
  report.model = settings.model;
  report.optimizer = settings.optimizer;
  report.disk = !settings.session.disk.folder.empty();
  report.device = settings.device;
  report.level = level;
  report.plain_peak = plain_peak;
  report.budget = parse_budget(settings.budget, plain_peak);
}

int steps_in_a_sample(const LiveSettings& settings, double plain_seconds) {
  constexpr double sample_seconds = 0.1, most = 16;
  if (settings.steps > 0) return settings.steps;
  return static_cast<int>(std::clamp(std::ceil(sample_seconds / plain_seconds), 1.0, most));
}

// The first step of a session has no plan and no trace. One step is a single measurement, so several sessions take
// theirs; the last of them is the one that goes on.
Session first_steps(Sides& sides, const LiveSettings& settings, LiveReport& report) {
  constexpr int least_sessions = 5, most_sessions = 15;
  const int sessions = std::clamp(report.steps_per_sample, least_sessions, most_sessions);
  std::optional<Session> session;
  Plain plain;
  Round round([&] { return sides.plain(); }, 1, plain);
  round.add([&] { return sides.reprise(*session); }, report.first);
  for (int i = 1; i <= sessions; ++i) {
    SessionOptions options = settings.session;
    // All but the last are not asked for a plan that is any good, only to take the same way as one that is.
    if (i < sessions) options.planning_time = std::min(options.planning_time, std::chrono::milliseconds(1));
    session.reset();
    session.emplace(sides.session(options, report.budget));
    round.run();
  }
  report.every_step.add(report.first.steps);
  std::cerr << "first step: " << spread_of(report.first.ratios).median << '\n';
  return std::move(*session);
}

// With a disk, a session without it is the measure: nothing if that cannot keep the budget.
std::optional<Session> without_disk(Sides& sides, const LiveSettings& settings, LiveReport& report) try {
  if (settings.session.disk.folder.empty()) return std::nullopt;
  SessionOptions options = settings.session;
  options.disk = {};
  Session session = sides.session(options, report.budget);
  report.every_step.add(sides.warm_up(session, options.planning_time));
  report.without_disk.emplace();
  return session;
} catch (const BudgetError& error) {
  std::cerr << "without a disk the budget cannot be kept: " << error.what() << '\n';
  return std::nullopt;
}

void repeat(Sides& sides, const LiveSettings& settings, Session& session, std::optional<Session> without,
            LiveReport& report) {
  const int steps = report.steps_per_sample;
  Round round([&] { return sides.plain(steps); }, 1, report.plain);
  if (settings.region > 0) {
    report.region_blocks = settings.region;
    round.add([&] { return sides.rerun({.every = settings.region}, steps); }, report.region.emplace());
  }
  round.add([&] { return sides.reprise(session, steps); }, report.reprise);
  if (without) round.add([&] { return sides.reprise(*without, steps); }, *report.without_disk);
  round.add_plain_again();
  for (Spread ratio; report.repetitions < settings.repetitions;) {
    round.run();
    sides.advance();
    ++report.repetitions;
    report.summary = session.summary();
    report.replay_seconds.push_back(report.summary.replay_seconds);
    report.pack_seconds.push_back(report.summary.pack_seconds);
    report.followed_plan = report.followed_plan && report.summary.followed_plan;

    ratio = spread_of(report.reprise.ratios);
    std::cerr << "repetition " << report.repetitions << ": ratio " << report.reprise.ratios.back() << ", plain again "
              << report.plain.again.ratios.back();
    if (report.region) std::cerr << ", regions " << report.region->ratios.back();
    if (report.without_disk) std::cerr << ", without a disk " << report.without_disk->ratios.back();
    std::cerr << ", median " << ratio.median << '\n';
    if (report.repetitions >= least_repetitions && ratio.high - ratio.low <= close_enough) break;
  }
  report.every_step.add(report.reprise.steps);
}

// A share needs the plain peak, and that a plain step. Bytes do not: then the side is really alone.
void ground_alone(const LiveSettings& settings, Training& training, LiveReport& report) {
  const bool is_share = settings.budget.ends_with("x") || settings.budget.ends_with("X");
  if (settings.only != "reprise") {
    report.level = device_of_training().meter().live();
  } else if (is_share) {
    const StepResult plain = training.plain();
    take_ground(settings, plain.level, plain.peak - plain.level, report);
  } else {
    take_ground(settings, device_of_training().meter().live(), 0, report);
  }
}

}  // namespace

void measure(const LiveSettings& settings, LiveReport& report) {
  Sides sides(settings.model, settings.optimizer);
  take_ground(settings, sides.level(), sides.plain_peak(), report);
  report.steps_per_sample = steps_in_a_sample(settings, sides.plain_seconds());
  std::cerr << settings.model << ": plain peak " << report.plain_peak << " bytes above a level of " << report.level
            << ", budget " << report.budget << '\n';
  Session session = first_steps(sides, settings, report);
  report.every_step.add(sides.warm_up(session, settings.session.planning_time));
  repeat(sides, settings, session, without_disk(sides, settings, report), report);
  report.level_growth = sides.level_growth();
  report.planning_seconds = sides.planning_seconds();
  if (device_of_training().is_cpu()) report.growth = growth_of_child(arguments_of_child(settings, report.budget));
}

void run_only(const LiveSettings& settings, LiveReport& report) {
  Training training(settings.model, settings.optimizer);
  ground_alone(settings, training, report);
  std::optional<ResidentWatch> watch;
  if (settings.resident) {
    meter::give_back();
    watch.emplace();
  }
  std::optional<Session> session;
  if (settings.only != "plain") {
    SessionOptions options = settings.session;
    options.budget = settings.only == "record" ? no_limit : report.level + report.budget;
    options.device = device_of_training().name();
    session.emplace(options);
  }
  for (int i = 0; i < settings.only_steps; ++i) {
    if (settings.run > 0) training.seed(static_cast<std::uint64_t>(i));
    if (!session) {
      training.plain();
      continue;
    }
    training.reprise(*session);
    if (settings.run == 0) session->wait_for_plan();
  }
  if (watch) write_growth(watch->growth());
}

}  // namespace reprise::benchmarks
