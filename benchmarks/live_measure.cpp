#include "live_measure.h"

#include <algorithm>
#include <iostream>
#include <vector>

#include "live_resident.h"
#include "live_sides.h"

namespace reprise::benchmarks {
namespace {

constexpr int least_repetitions = 5;
constexpr double close_enough = 0.03;  // the quartiles of the ratio to each other

// Measures anything against the plain samples before and after it.
class BetweenPlain {
 public:
  BetweenPlain(Sides& sides, int steps) : sides_(sides), steps_(steps), before_(sides.plain(steps)) {}

  template <typename Sample>
  double ratio(const Sample& sample) {
    const double seconds = sample();
    const double after = sides_.plain(steps_);
    const double result = seconds / ((before_ + after) / 2);
    plain_.push_back(after / steps_);
    before_ = after;
    return result;
  }
  [[nodiscard]] double plain_seconds() const { return spread_of(plain_).median; }

 private:
  Sides& sides_;
  int steps_;
  double before_;
  std::vector<double> plain_;
};

// The first step of a session has no plan and no trace. One step is a single measurement, so several sessions take
// theirs; the last of them is the one that goes on.
Session first_steps(Sides& sides, const Settings& settings, Report& report) {
  constexpr int most_sessions = 15;
  const int sessions = std::clamp(sides.steps_per_sample(), 5, most_sessions);
  // These are not asked for a plan that is any good, only to take the same way as one that is.
  const auto hardly_any = std::min(settings.session.planning_time, std::chrono::milliseconds(1));
  BetweenPlain between(sides, 1);
  std::vector<double> ratios;
  for (int i = 1; i < sessions; ++i) {
    Session session = sides.session(sides.ground().budget, hardly_any);
    ratios.push_back(between.ratio([&] { return sides.reprise(session, 1); }));
  }
  Session session = sides.session(sides.ground().budget, settings.session.planning_time);
  ratios.push_back(between.ratio([&] { return sides.reprise(session, 1); }));
  report.first = spread_of(ratios);
  std::cerr << "first step: " << report.first->median << '\n';
  return session;
}

// Costs become what they are without cold caches, and the plan is made.
void settle(Sides& sides, const Settings& settings, Session& session) {
  constexpr int least = 4, most = 12;
  const bool plans = settings.session.planning_time.count() > 0;
  for (int i = 1; i <= most; ++i) {
    sides.reprise(session, 1);
    if (i >= least && (!plans || session.summary().followed_plan)) return;
  }
  std::cerr << "no plan was followed in " << most << " steps\n";
}

void repeat(Sides& sides, const Settings& settings, Session& session, Report& report) {
  BetweenPlain between(sides, sides.steps_per_sample());
  std::vector<double> ratios, again, regions, replay_seconds, pack_seconds;
  while (report.repetitions < settings.repetitions) {
    ++report.repetitions;
    if (settings.region > 0) regions.push_back(between.ratio([&] { return sides.region(); }));
    ratios.push_back(between.ratio([&] { return sides.reprise(session); }));
    const Summary summary = session.summary();
    replay_seconds.push_back(summary.replay_seconds);
    pack_seconds.push_back(summary.pack_seconds);
    report.followed_plan = report.followed_plan && summary.followed_plan;
    again.push_back(between.ratio([&] { return sides.plain(); }));
    sides.advance();

    report.ratio = spread_of(ratios);
    std::cerr << "repetition " << report.repetitions << ": ratio " << ratios.back() << ", plain again " << again.back();
    if (!regions.empty()) std::cerr << ", regions " << regions.back();
    std::cerr << ", median " << report.ratio.median << '\n';
    if (report.repetitions >= least_repetitions && report.ratio.high - report.ratio.low <= close_enough) break;
  }
  report.plain_again = spread_of(again);
  report.plain_seconds = between.plain_seconds();
  report.replay_seconds = spread_of(replay_seconds).median;
  report.pack_seconds = spread_of(pack_seconds).median;
  if (!regions.empty()) report.region = Report::Region{settings.region, spread_of(regions), 0, true, true};
}

void take_summary(const Summary& summary, const Ground& ground, Report& report) {
  report.replays = summary.replays;
  report.forgotten = summary.forgotten_last_step;
  report.packed = summary.packed_last_step;
  if (summary.promised_peak) report.promised_peak = *summary.promised_peak - ground.level;
  report.promised_overhead = summary.promised_overhead;
  report.gap = summary.gap;
  report.divergences = summary.divergences;
  report.verified = summary.verified;
}

void take_tally(const Sides::Tally& tally, Report& report) {
  report.peak = tally.peak;
  report.level_growth = tally.level_growth;
  report.bit_equal = tally.bit_equal;
  report.planning_seconds = tally.planning_seconds;
  if (!report.region) return;
  report.region->peak = tally.region_peak;
  report.region->gradients_equal = tally.region_gradients_equal;
  report.region->buffers_equal = tally.region_buffers_equal;
}

}  // namespace

Report measure(const Settings& settings) {
  Sides sides(settings);
  const Ground& ground = sides.ground();
  std::cerr << settings.model << ": plain peak " << ground.plain_peak << " bytes above a level of " << ground.level
            << ", budget " << ground.budget << '\n';
  Report report;
  report.model = settings.model;
  report.optimizer = settings.optimizer;
  report.level = ground.level;
  report.plain_peak = ground.plain_peak;
  report.budget = ground.budget;
  report.steps_per_sample = sides.steps_per_sample();
  Session session = first_steps(sides, settings, report);
  settle(sides, settings, session);
  repeat(sides, settings, session, report);
  take_summary(session.summary(), ground, report);
  take_tally(sides.tally(), report);
  if (const auto growth = growth_of_child(arguments_of_child(settings, ground.budget))) {
    report.resident_growth = growth->resident;
    report.anonymous_growth = growth->anonymous;
  }
  return report;
}

}  // namespace reprise::benchmarks
