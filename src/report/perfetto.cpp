#include "reprise/report/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/layers.h"
#include "report/words.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

using Json = nlohmann::ordered_json;

constexpr int process = 1;
enum Track : int { step_track = 1, replay_track = 2, packing_track = 3, disk_track = 4 };

class EventWriter {
 public:
  EventWriter(const Trace& trace, bool with_disk) : trace_(trace) {
    name_track("process_name", step_track, name_of(trace));
    name_track("thread_name", step_track, "step");
    name_track("thread_name", replay_track, "replays");
    name_track("thread_name", packing_track, "packing");
    if (with_disk) name_track("thread_name", disk_track, "disk");
  }

  void add(const Plan& plan, const Action& action, double from, double duration) {
    switch (action.kind) {
      case Action::Kind::run: return add_moment(action.target, step_track, from, duration);
      case Action::Kind::replay: return add_moment(action.target, replay_track, from, duration);
      case Action::Kind::drop: return;  // takes no time; the counter shows it
      case Action::Kind::put:
      case Action::Kind::get: {
        const Json arguments = {{"value", action.target},
                                {"bytes", trace_.values[action.target].bytes},
                                {"tier", plan.tiers[action.tier].name}};
        const bool put = action.kind == Action::Kind::put, packs = plan.tiers[action.tier].in_budget;
        const char* const verb = packs ? (put ? "pack" : "unpack") : (put ? "write" : "read");
        return add_event(fmt::format("{} {}", verb, maker_of(trace_, action.target, 80)),
                         packs ? packing_track : disk_track, from, duration, arguments);
      }
    }
  }

  void count(const char* name, double at, Bytes bytes) {
    add_line({{"name", name}, {"ph", "C"}, {"pid", process}, {"tid", 0}, {"ts", at}, {"args", {{"bytes", bytes}}}});
  }

  // One event on a line.
  [[nodiscard]] std::string take() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + text_ + "\n]}\n"; }

 private:
  void name_track(const char* kind, Track track, const std::string& name) {
    add_line({{"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"ts", 0}, {"args", {{"name", name}}}});
  }

  void add_moment(Id moment, Track track, double from, double duration) {
    Json arguments = {{"moment", moment}};
    if (const auto& op = trace_.moments[moment].runs; op && !trace_.operators[*op].module.empty()) {
      arguments["module"] = trace_.operators[*op].module;
    }
    const std::string& label = trace_.label(moment);
    add_event(label.empty() ? fmt::format("moment {}", moment) : label, track, from, duration, arguments);
  }

  void add_event(const std::string& name, Track track, double from, double duration, const Json& arguments) {
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
    text_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const Trace& trace_;
  std::string text_;
};

}  // namespace

std::string to_perfetto(const Trace& trace, const Plan& plan) {
  const Simulation simulation = simulate(trace, plan, {.record_residences = true, .record_times = true});
  if (simulation.broken) throw BadInput("", "plan", simulation.broken->sentence);
  const std::vector<double>& costs = simulation.times;
  const std::vector<Bytes> on_disk = outside_the_budget(plan, simulation);
  const bool with_disk = std::any_of(on_disk.begin(), on_disk.end(), [](Bytes bytes) { return bytes > 0; });
  EventWriter events(trace, with_disk);
  bool begun = false;
  events.count("budget", 0, plan.budget);
  auto transfer = simulation.transfers.begin();
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& action = plan.actions[i];
    if (transfer != simulation.transfers.end() && transfer->action == i) {  // when its tier does it
      events.add(plan, action, transfer->begin, transfer->end - transfer->begin);
      ++transfer;
    } else {
      events.add(plan, action, costs[i], costs[i + 1] - costs[i]);
    }
    // What is dropped in front of everything is not held against the budget, so it is not shown either.
    begun = begun || action.kind != Action::Kind::drop;
    if (!begun) continue;
    events.count("live bytes", costs[i], simulation.live[i]);
    if (with_disk) events.count("bytes on disk", costs[i], on_disk[i]);
  }
  events.count("budget", costs.back(), plan.budget);
  return events.take();
}

}  // namespace reprise
