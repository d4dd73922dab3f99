// Results for programs.
#include "reprise/report/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "examples.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

using Json = nlohmann::json;

Json parse(const std::string& line) {
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return Json::parse(line);
}

PlanResult plan_for(const Trace& trace, Bytes budget) {
  PlanOptions options;
  options.budget = budget;
  options.moves = 500;
  return make_plan(trace, options);
}

TEST(JsonLine, OfAPlanHasTheNumbersOfTheResult) {
  const Trace trace = testing::random_training_step(1, 10);
  const PlanResult result = plan_for(trace, keep_everything(trace).budget);
  const Json json = parse(json_line(trace, result));
  EXPECT_EQ(json["status"], "optimal");
  EXPECT_EQ(json["planner"], "best");
  EXPECT_EQ(json["cost"], result.simulation.cost);
  EXPECT_EQ(json["cost_ratio"], 1.0);
  EXPECT_EQ(json["peak_bytes"], result.simulation.peak);
  EXPECT_EQ(json["budget_bytes"], result.budget);
  EXPECT_EQ(json["keep_everything_peak_bytes"], result.keep_everything_peak);
  EXPECT_EQ(json["floor_bytes"], result.floor);
  EXPECT_EQ(json["lower_bound_ratio"], 1.0);
  EXPECT_EQ(json["gap"], 0.0);
  EXPECT_EQ(json["replays"], 0);
  EXPECT_TRUE(json["seconds"].is_number());
  EXPECT_FALSE(json.contains("smallest_feasible_bytes"));
}

TEST(JsonLine, OfAnInfeasibleBudgetHasNoCostButAWayOut) {
  const Trace trace = testing::random_training_step(1, 10);
  const PlanResult result = plan_for(trace, 0);
  const Json json = parse(json_line(trace, result));
  EXPECT_EQ(json["status"], "infeasible");
  for (const char* key :
       {"cost", "cost_ratio", "overhead", "peak_bytes", "gap", "replays", "puts", "gets", "actions"}) {
    EXPECT_TRUE(json.contains(key) && json[key].is_null()) << key;
  }
  EXPECT_EQ(json["smallest_feasible_bytes"], *result.smallest_feasible);
  EXPECT_EQ(json["blocker"]["moment"], result.blocker->moment);
  EXPECT_EQ(json["blocker"]["bytes"], result.blocker->bytes);
  EXPECT_TRUE(json["blocker"]["values"].is_array());
}

TEST(JsonLine, OfASimulationTellsTheBrokenRule) {
  const Trace trace = testing::random_training_step(1, 10);
  Plan plan = keep_everything(trace);
  Json json = parse(json_line(trace, plan, simulate(trace, plan)));
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["peak_bytes"], plan.budget);
  EXPECT_FALSE(json.contains("broken"));

  plan.budget -= 1;
  json = parse(json_line(trace, plan, simulate(trace, plan)));
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["broken"]["rule"], "budget");
  EXPECT_TRUE(json["cost"].is_null());
}

TEST(JsonLine, OfACurveLeavesOutWhatWasNotPlanned) {
  Curve curve = testing::hand_made_curve({{20, 0.5}, {40, 0.2}, {60, 0.1}, {100, 0}});
  curve.knee = 2;
  curve.points[1].result.reset();
  const Json json = parse(json_line(Trace{}, curve));
  ASSERT_EQ(json["points"].size(), 3u);
  EXPECT_EQ(json["knee"], 1);
  EXPECT_EQ(json["points"][1]["budget_bytes"], 60);
  EXPECT_EQ(json["knee_bytes"], 60);
  EXPECT_NEAR(json["points"][1]["overhead"].get<double>(), 0.1, 1e-12);
  EXPECT_EQ(json["keep_everything_peak_bytes"], 100);
  EXPECT_TRUE(json["advice"].is_string());
}

TEST(JsonLine, OfAnInspectionHasWhatTheTextHas) {
  const Trace trace = testing::random_training_step(4, 12);
  const Inspection inspection = inspect(trace);
  const Json json = parse(json_line(trace, inspection));
  EXPECT_EQ(json["operators"], inspection.operators);
  EXPECT_EQ(json["keep_everything_peak_bytes"], inspection.keep_everything_peak);
  EXPECT_EQ(json["peak"]["moment"], inspection.peak->moment);
  EXPECT_EQ(json["worth_most"].size(), inspection.worth_most.size());
  EXPECT_EQ(json["worth_most"][0]["value"], inspection.worth_most[0].value);
  EXPECT_EQ(json["fixed"]["count"], inspection.fixed.size());
}

TEST(JsonLine, IsJsonWhateverTheNamesAre) {
  Trace trace = testing::random_training_step(4, 6);
  trace.name = "line\nbreak \"quoted\" \xff";
  for (Operator& op : trace.operators) op.name = "\x80";
  EXPECT_TRUE(parse(json_line(trace, inspect(trace))).is_object());
  EXPECT_TRUE(parse(json_line(trace, plan_for(trace, 0))).is_object());
  EXPECT_TRUE(parse(json_line(Trace{}, inspect(Trace{}))).is_object());
}

}  // namespace
}  // namespace reprise
