#include "reprise/report/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/dump_json.h"
#include "reprise/report/curve_views.h"
#include "reprise/report/fit_views.h"

namespace reprise {
using namespace internal;
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t values_listed = 10;

Json value_record(const Trace& trace, Id v) {
  const Value& value = trace.values[v];
  Json record = {{"value", v}, {"bytes", value.bytes}, {"maker", nullptr}};
  if (value.maker) record["maker"] = trace.operators[*value.maker].name;
  return record;
}

Json value_list(const Trace& trace, const std::vector<Id>& values) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(values_listed, values.size()); ++i)
    list.push_back(value_record(trace, values[i]));
  return list;
}

Json blocker_record(const Trace& trace, const Blocker& blocker) {
  return {{"moment", blocker.moment},
          {"name", trace.moments.empty() ? "" : trace.label(blocker.moment)},
          {"bytes", blocker.bytes},
          {"proven", blocker.proven},
          {"values", value_list(trace, blocker.values)}};
}

Json result_record(const PlanResult& result) {
  const bool has_plan = result.has_plan();
  const Simulation& simulation = result.simulation;
  const auto if_planned = [has_plan](auto number) { return has_plan ? Json(number) : Json(nullptr); };
  return {{"status", name(result.status)},
          {"planner", result.planner},
          {"cost", if_planned(simulation.cost)},
          {"cost_ratio", if_planned(result.cost_ratio())},
          {"overhead", if_planned(result.cost_ratio() - 1)},
          {"peak_bytes", if_planned(simulation.peak)},
          {"budget_bytes", result.budget},
          {"keep_everything_peak_bytes", result.keep_everything_peak},
          {"floor_bytes", result.floor},
          {"plain_cost", result.plain_cost},
          {"lower_bound", result.lower_bound},
          {"lower_bound_ratio", result.lower_bound_ratio()},
          {"gap", if_planned(result.gap())},
          {"replays", if_planned(simulation.replays)},
          {"puts", if_planned(simulation.puts)},
          {"gets", if_planned(simulation.gets)},
          {"actions", if_planned(result.plan.actions.size())},
          {"moves", result.moves},
          {"seconds", result.seconds},
          {"cancelled", result.cancelled},
          {"notes", result.notes}};
}

}  // namespace

std::string json_line(const Trace& trace, const PlanResult& result) {
  Json json = result_record(result);
  json["name"] = trace.name;
  if (!result.has_plan()) {
    json["smallest_feasible_bytes"] = result.smallest_feasible ? Json(*result.smallest_feasible) : Json(nullptr);
    json["blocker"] = result.blocker ? blocker_record(trace, *result.blocker) : Json(nullptr);
  }
  return dump_json(json);
}

std::string json_line(const Trace& trace, const Plan& plan, const Simulation& simulation) {
  const bool valid = simulation.valid();
  const double plain = trace.total_cost();
  const double ratio = plain > 0 ? simulation.cost / plain : 1;
  const auto if_valid = [valid](auto number) { return valid ? Json(number) : Json(nullptr); };
  Json json = {{"valid", valid},
               {"name", trace.name},
               {"cost", if_valid(simulation.cost)},
               {"cost_ratio", if_valid(ratio)},
               {"overhead", if_valid(ratio - 1)},
               {"peak_bytes", if_valid(simulation.peak)},
               {"peak_action", if_valid(simulation.peak_action)},
               {"budget_bytes", plan.budget},
               {"keep_everything_peak_bytes", keep_everything(trace).budget},
               {"replays", simulation.replays},
               {"puts", simulation.puts},
               {"gets", simulation.gets},
               {"replay_cost", simulation.replay_cost},
               {"tier_cost", simulation.tier_cost},
               {"waited", simulation.waited},
               {"tier_peak_bytes", Json::object()},
               {"actions", plan.actions.size()}};
  for (std::size_t i = 0; i < plan.tiers.size(); ++i)
    json["tier_peak_bytes"][plan.tiers[i].name] = simulation.tier_peaks[i];
  if (const auto& broken = simulation.broken) {
    json["broken"] = {{"rule", name(broken->rule)},
                      {"action", broken->action},
                      {"value", broken->value ? Json(*broken->value) : Json(nullptr)},
                      {"sentence", broken->sentence}};
  }
  return dump_json(json);
}

std::string json_line(const Trace& trace, const Curve& curve) {
  Json points = Json::array();
  Json knee = nullptr, knee_bytes = nullptr;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const CurvePoint& point = curve.points[i];
    if (!point.result) continue;
    if (curve.knee == i) {
      knee = points.size();
      knee_bytes = point.budget;
    }
    const double everything = static_cast<double>(curve.keep_everything_peak);
    Json record = {{"budget_bytes", point.budget},
                   {"share", everything > 0 ? static_cast<double>(point.budget) / everything : 1}};
    const Json result = result_record(*point.result);
    for (const char* key : {"status", "cost", "cost_ratio", "overhead", "peak_bytes", "lower_bound",
                            "lower_bound_ratio", "gap", "replays", "puts", "gets", "seconds"}) {
      record[key] = result[key];
    }
    points.push_back(std::move(record));
  }
  return dump_json({{"name", trace.name},
                    {"points", std::move(points)},
                    {"knee", knee},
                    {"knee_bytes", knee_bytes},
                    {"smallest_feasible_bytes", curve.smallest},
                    {"floor_bytes", curve.floor},
                    {"keep_everything_peak_bytes", curve.keep_everything_peak},
                    {"plain_cost", curve.plain_cost},
                    {"advice", advice(curve)},
                    {"seconds", curve.seconds},
                    {"cancelled", curve.cancelled}});
}

std::string json_line(const Fit& fit) {
  Json points = Json::array();
  for (const FitPoint& point : fit.points) {
    const bool has_plan = point.result.has_plan();
    const Json result = result_record(point.result);
    Json record = {{"size", point.size}, {"recorded", point.recorded}};
    for (const char* key : {"status", "keep_everything_peak_bytes", "floor_bytes", "plain_cost"}) {
      record[key] = result[key];
    }
    record["plain_cost_per_sample"] = point.plain_cost_per_sample();
    record["cost"] = result["cost"];
    record["cost_per_sample"] = has_plan ? Json(point.cost_per_sample()) : Json(nullptr);
    for (const char* key : {"overhead", "peak_bytes", "replays", "puts", "gets"}) record[key] = result[key];
    const auto& smallest = point.result.smallest_feasible;
    record["smallest_feasible_bytes"] = !has_plan && smallest ? Json(*smallest) : Json(nullptr);
    points.push_back(std::move(record));
  }
  const auto size_of = [&](std::optional<std::size_t> point) {
    return point ? Json(fit.points[*point].size) : Json(nullptr);
  };
  return dump_json({{"budget_bytes", fit.budget},
                    {"recorded", fit.recorded},
                    {"points", std::move(points)},
                    {"largest", size_of(fit.largest)},
                    {"cheapest", size_of(fit.cheapest)},
                    {"reached_the_end", fit.reached_the_end},
                    {"advice", advice(fit)},
                    {"seconds", fit.seconds},
                    {"cancelled", fit.cancelled}});
}

std::string json_line(const Trace& trace, const Inspection& inspection) {
  Json tiers = Json::array();
  for (const Tier& tier : trace.tiers) {
    tiers.push_back({{"name", tier.name}, {"in_budget", tier.in_budget}, {"values", tier.entries.size()}});
  }
  Json peak = nullptr;
  if (inspection.peak) {
    peak = {{"moment", inspection.peak->moment},
            {"name", trace.label(inspection.peak->moment)},
            {"bytes", inspection.peak->bytes},
            {"other_bytes", inspection.peak->other},
            {"workspace_bytes", inspection.peak->workspace},
            {"values", value_list(trace, inspection.peak->values)}};
  }
  Json floor = blocker_record(trace, inspection.floor);
  const FloorParts& parts = inspection.floor_parts;
  floor.update({{"needed_bytes", parts.needed},
                {"made_bytes", parts.made},
                {"workspace_bytes", parts.workspace},
                {"held_bytes", parts.held},
                {"fixed_bytes", parts.fixed},
                {"other_bytes", parts.other}});
  Json worth_most = Json::array();
  for (const Inspection::Candidate& candidate : inspection.worth_most) {
    Json record = value_record(trace, candidate.value);
    record.update({{"from_moment", candidate.from},
                   {"until_moment", candidate.until},
                   {"unused_cost", candidate.unused},
                   {"recompute_cost", candidate.recompute},
                   {"replays", candidate.replays},
                   {"at_peak", candidate.at_peak}});
    worth_most.push_back(std::move(record));
  }
  return dump_json({{"name", inspection.name},
                    {"operators", inspection.operators},
                    {"moments", inspection.moments},
                    {"events", inspection.events},
                    {"values", inspection.values},
                    {"outside_values", inspection.outside},
                    {"value_bytes", inspection.value_bytes},
                    {"outside_bytes", inspection.outside_bytes},
                    {"largest_other_bytes", inspection.largest_other},
                    {"keep_everything_peak_bytes", inspection.keep_everything_peak},
                    {"floor_bytes", inspection.floor.bytes},
                    {"floor", std::move(floor)},
                    {"cost", inspection.cost},
                    {"event_cost", inspection.event_cost},
                    {"tiers", std::move(tiers)},
                    {"peak", std::move(peak)},
                    {"worth_most", std::move(worth_most)},
                    {"fixed",
                     {{"count", inspection.fixed.size()},
                      {"bytes", inspection.fixed_bytes},
                      {"values", value_list(trace, inspection.fixed)}}}});
}

}  // namespace reprise
