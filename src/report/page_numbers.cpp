// The page's numbers for programs, and for the script that shows details under the pointer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/dump_json.h"
#include "report/page_parts.h"
#include "report/tier_words.h"
#include "reprise/report/json.h"

namespace reprise::internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t points_listed = 40, kept_listed = 20;
constexpr std::size_t longest_detail = 60;  // bytes

std::string cut(std::string name) {
  if (name.size() <= longest_detail) return name;
  std::size_t length = longest_detail;
  while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;  // not inside a character
  return name.substr(0, length) + "…";
}

// What is done in a column, in words.
std::string label(const Trace& trace, const Plan& plan, const Action& action) {
  switch (action.kind) {
    case Action::Kind::run: return cut(trace.label(action.target));
    case Action::Kind::replay: return "replay of " + cut(trace.label(action.target));
    case Action::Kind::drop: return "drop";
    case Action::Kind::put: return cut(putting(plan.tiers[action.tier]));
    case Action::Kind::get: return cut(getting(plan.tiers[action.tier]));
  }
  return "";
}

Json side(const Trace& trace, const Plan& plan, const Simulation& simulation, const Columns& columns) {
  const double plain = trace.total_cost();
  Json layers = Json::array(), labels = Json::array();
  for (const LayerBytes& column : columns.layers) layers.push_back(column.of);
  for (const std::size_t action : columns.actions) labels.push_back(label(trace, plan, plan.actions[action]));
  return {{"peak_bytes", simulation.peak},
          {"cost_ratio", plain > 0 ? simulation.cost / plain : 1},
          {"columns", std::move(layers)},
          {"labels", std::move(labels)}};
}

// What the plan does with each of its tiers.
Json tiers(const PageData& data) {
  Json list = Json::array();
  for (const TierUse& use : tiers_used(data.plan(), data.simulation())) {
    const Tier& tier = data.plan().tiers[use.tier];
    list.push_back({{"name", cut(tier.name)},
                    {"in_budget", tier.in_budget},
                    {"puts", use.puts},
                    {"gets", use.gets},
                    {"peak_bytes", use.peak}});
  }
  return list;
}

}  // namespace

std::string puts_key(Id tier) {
  return fmt::format("puts_in_tier_{}", tier);
}
std::string peak_key(Id tier) {
  return fmt::format("peak_in_tier_{}_bytes", tier);
}

std::string page_numbers(const PageData& data) {
  Json names = Json::array();
  for (std::size_t i = 0; i < layer_count; ++i) names.push_back(name(static_cast<MemoryLayer>(i)));
  const auto if_planned = [&](auto value) { return data.after ? Json(value) : Json(nullptr); };
  const Simulation& simulation = data.simulation();
  Json json = {{"name", cut(data.trace.name)},
               {"budget_bytes", if_planned(data.plan().budget)},
               {"peak_before_bytes", data.before.peak},
               {"peak_after_bytes", if_planned(simulation.peak)},
               {"overhead", if_planned(data.cost_ratio() - 1)},
               {"replays", if_planned(simulation.replays)},
               {"puts", if_planned(simulation.puts)},
               {"gets", if_planned(simulation.gets)},
               {"tiers", if_planned(tiers(data))},
               {"floor_bytes", data.inspection.floor.bytes},
               {"plain_cost", data.trace.total_cost()},
               {"layers", std::move(names)},
               {"before", side(data.trace, data.everything, data.before, data.columns_before)},
               {"after", nullptr},
               {"curve", nullptr},
               {"summary", nullptr}};
  for (const TierUse& use : tiers_used(data.plan(), simulation)) {
    json[puts_key(use.tier)] = use.puts;
    json[peak_key(use.tier)] = use.peak;
  }
  if (data.after) json["after"] = side(data.trace, data.plan(), *data.after, *data.columns_after);
  if (data.input.curve) {
    json["curve"] = Json::parse(json_line(data.trace, thinned(*data.input.curve, points_listed)));
    json["curve"].erase("name");  // it may have any length
  }
  if (const Summary* const summary = data.input.summary) {
    Summary shown = *summary;
    shown.name = cut(shown.name);
    if (shown.kept.size() > kept_listed) shown.kept.resize(kept_listed);
    json["summary"] = Json::parse(json_line(shown));
    json["measured_peak_bytes"] = summary->peak_last_step();
    json["measured_highest_peak_bytes"] = summary->peak();
    for (std::size_t i = 1; i < summary->devices.size(); ++i) {
      json[fmt::format("measured_peak_of_device_{}_bytes", i)] = summary->devices[i].peak_last_step;
    }
    json["measured_overhead"] = summary->overhead();
    json["steps"] = summary->steps;
    json["followed_plan"] = summary->followed_plan;
    json["verified"] = summary->verified;
  }
  std::string text = dump_json(json);
  // Nothing in it may end the script element or begin a comment.
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace reprise::internal
