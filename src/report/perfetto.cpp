#include "reprise/report/perfetto.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/dump_json.h"
#include "report/layers.h"
#include "report/tier_words.h"
#include "report/words.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

using Json = nlohmann::ordered_json;

constexpr int process = 1;
enum Track : int { step_track = 1, replay_track = 2, packing_track = 3, first_tier_track = 4 };

class EventWriter {
 public:
  EventWriter(const Trace& trace, const Plan& plan, const std::vector<TierUse>& used)
      : trace_(trace), plan_(plan), tracks_(plan.tiers.size(), {packing_track, packing_track}) {
    name_track("process_name", step_track, name_of(trace));
    name_track("thread_name", step_track, "step");
    name_track("thread_name", replay_track, "replays");
    name_track("thread_name", packing_track, "packing");
    int next = first_tier_track;
    for (const TierUse& use : used) {
      const Tier& tier = plan.tiers[use.tier];
      if (tier.in_budget) continue;
      // Events of a track must not overlap, and puts and gets do in a tier that does both at the same time.
      const int puts = next++, gets = tier.duplex ? next++ : puts;
      tracks_[use.tier] = {puts, gets};
      name_track("thread_name", puts, tier.duplex ? tier.name + ", puts" : tier.name);
      if (tier.duplex) name_track("thread_name", gets, tier.name + ", gets");
    }
  }

  void add(const Action& action, double from, double duration) {
    switch (action.kind) {
      case Action::Kind::run: return add_moment(action.target, step_track, from, duration);
      case Action::Kind::replay: return add_moment(action.target, replay_track, from, duration);
      case Action::Kind::drop: return;  // takes no time; the counter shows it
      case Action::Kind::put: return add_transfer(action, putting(plan_.tiers[action.tier]), from, duration);
      case Action::Kind::get: return add_transfer(action, getting(plan_.tiers[action.tier]), from, duration);
    }
  }

  void count(const std::string& name, double at, Bytes bytes) {
    add_line({{"name", name}, {"ph", "C"}, {"pid", process}, {"tid", 0}, {"ts", at}, {"args", {{"bytes", bytes}}}});
  }

  // One event on a line.
  [[nodiscard]] std::string take() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + text_ + "\n]}\n"; }

 private:
  void name_track(const char* kind, int track, const std::string& name) {
    add_line({{"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"ts", 0}, {"args", {{"name", name}}}});
  }

  void add_transfer(const Action& action, const std::string& what, double from, double duration) {
    const Json arguments = {{"value", action.target},
                            {"bytes", trace_.values[action.target].bytes},
                            {"tier", plan_.tiers[action.tier].name}};
    const auto [puts, gets] = tracks_[action.tier];
    add_event(fmt::format("{}: {}", what, maker_of(trace_, action.target, 80)),
              action.kind == Action::Kind::put ? puts : gets, from, duration, arguments);
  }

  void add_moment(Id moment, int track, double from, double duration) {
    Json arguments = {{"moment", moment}};
    if (const auto& op = trace_.moments[moment].runs; op && !trace_.operators[*op].module.empty()) {
      arguments["module"] = trace_.operators[*op].module;
    }
    const std::string& label = trace_.label(moment);
    add_event(label.empty() ? fmt::format("moment {}", moment) : label, track, from, duration, arguments);
  }

  void add_event(const std::string& name, int track, double from, double duration, const Json& arguments) {
    add_line({{"name", name},
              {"ph", "X"},
              {"pid", process},
              {"tid", track},
              {"ts", from},
              {"dur", duration},
              {"args", arguments}});
  }

  void add_line(const Json& event) {
    if (!text_.empty()) text_ += ",\n";
    text_ += dump_json(event);
  }

  const Trace& trace_;
  const Plan& plan_;
  std::vector<std::pair<int, int>> tracks_;  // by tier: of its puts and of its gets
  std::string text_;
};

}  // namespace

std::string to_perfetto(const Trace& trace, const Plan& plan) {
  const Simulation simulation = simulate(trace, plan, {.record_residences = true, .record_times = true});
  if (simulation.broken) throw BadInput("", "plan", simulation.broken->sentence);
  const std::vector<double>& costs = simulation.times;
  const std::vector<TierUse> used = tiers_used(plan, simulation);
  std::vector<std::pair<std::string, std::vector<Bytes>>> outside;  // the name of the counter, and bytes by action
  for (const TierUse& use : used) {
    const Tier& tier = plan.tiers[use.tier];
    if (!tier.in_budget) outside.emplace_back("bytes " + where(tier), bytes_in(plan, simulation, use.tier));
  }
  EventWriter events(trace, plan, used);
  bool begun = false;
  events.count("budget", 0, plan.budget);
  auto transfer = simulation.transfers.begin();
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& action = plan.actions[i];
    if (transfer != simulation.transfers.end() && transfer->action == i) {  // when its tier does it
      events.add(action, transfer->begin, transfer->end - transfer->begin);
      ++transfer;
    } else {
      events.add(action, costs[i], costs[i + 1] - costs[i]);
    }
    // What is dropped in front of everything is not held against the budget, so it is not shown either.
    begun = begun || action.kind != Action::Kind::drop;
    if (!begun) continue;
    events.count("live bytes", costs[i], simulation.live[i]);
    for (const auto& [name, bytes] : outside) events.count(name, costs[i], bytes[i]);
  }
  events.count("budget", costs.back(), plan.budget);
  return events.take();
}

}  // namespace reprise
