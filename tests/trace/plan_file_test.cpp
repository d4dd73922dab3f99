#include <gtest/gtest.h>

#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "support/random_trace.h"
#include "support/temporary_folder.h"

namespace reprise::plan_file_test {
namespace {

std::string plan_with(const std::string& rest) {
  return R"({"format":"reprise-plan","version":1)" + rest + "}";
}
std::string plan_of(const std::string& actions) {
  return plan_with(R"(,"budget_bytes":7,"actions":[)" + actions + "]");
}

void expect_error(const std::string& json, const std::string& place, const std::string& words) {
  try {
    static_cast<void>(parse_plan(json));
    ADD_FAILURE() << "no error for " << json;
  } catch (const BadInput& error) {
    EXPECT_EQ(error.place(), place) << error.what();
    EXPECT_NE(error.reason().find(words), std::string::npos) << error.what();
  }
}

Plan random_plan(std::uint64_t seed) {
  testing::Random random(seed);
  testing::RandomTraceOptions options;
  options.odd_costs = 0.5;
  options.overlap = 0.5;
  Plan plan;
  plan.budget = static_cast<Bytes>(random.next() >> 1);
  plan.tiers = testing::random_trace(seed, options).tiers;
  for (std::uint64_t i = random.below(30); i > 0; --i) {
    const auto kind = static_cast<Action::Kind>(random.below(5));
    const Id tier = kind >= Action::Kind::put ? random.between(0, 3) : 0;
    plan.actions.push_back({kind, static_cast<Id>(random.below(1u << 31)), tier});
  }
  return plan;
}

TEST(PlanFile, IsReadBackExactly) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Plan plan = random_plan(seed);
    const std::string json = to_json(plan);
    ASSERT_EQ(parse_plan(json), plan) << json;
    ASSERT_EQ(to_json(parse_plan(json)), json);
  }
}

TEST(PlanFile, LooksAsDocumented) {
  Tier packed;
  packed.name = "packed";
  packed.entries = {{3, 512, 0.25, 0.5}};
  Tier disk;
  disk.name = "disk";
  disk.capacity = 1000000;
  disk.in_budget = false;
  const Plan plan{
      4096, {packed, disk}, {Action::run(0), Action::drop(3), Action::replay(3), Action::put(3, 0), Action::get(3, 0)}};
  EXPECT_EQ(to_json(plan), R"({"format":"reprise-plan","version":1,"budget_bytes":4096,
"tiers":[
{"name":"packed","in_budget":true,"values":[
[3,512,0.25,0.5]
]},
{"name":"disk","capacity_bytes":1000000,"in_budget":false,"values":[]}
],
"actions":[
["run",0],
["drop",3],
["replay",3],
["put",3,0],
["get",3,0]
]}
)");
}

TEST(PlanFile, OnOneLineIsUnderstood) {
  const Plan plan = parse_plan(
      R"({"format":"reprise-plan","version":1,"budget_bytes":100,"tiers":[],"actions":[["run",0],["drop",3],["replay",3]]})");
  EXPECT_EQ(plan.budget, 100);
  EXPECT_EQ(plan.actions, (std::vector<Action>{Action::run(0), Action::drop(3), Action::replay(3)}));
  EXPECT_EQ(parse_plan(plan_of("")).actions.size(), 0u);  // tiers may be left out
}

TEST(PlanFile, WithAWrongActionIsRejected) {
  expect_error(plan_of(R"(["run",0],["jump",1])"), "actions[1][0]", "'jump' is none of run, replay, drop, put and get");
  expect_error(plan_of(R"([])"), "actions[0]", "expected an action");
  expect_error(plan_of(R"(["run"])"), "actions[0]", "the target of run is missing");
  expect_error(plan_of(R"(["run",0,0])"), "actions[0][2]", "only put and get name a tier, not run");
  expect_error(plan_of(R"(["put",0])"), "actions[0]", "the tier of put is missing");
  expect_error(plan_of(R"(["get",0,0,0])"), "actions[0][3]", "one item too many");
  expect_error(plan_of(R"(["run","0"])"), "actions[0][1]", "expected a number, found a string");
  expect_error(plan_of(R"(["run",-1])"), "actions[0][1]", "-1 is not an id");
  expect_error(plan_of(R"(["run",2147483648])"), "actions[0][1]", "2147483648 is not an id");
  expect_error(plan_of(R"("run")"), "actions[0]", "expected a list, found a string");
  expect_error(plan_of(R"([0,"run"])"), "actions[0][0]", "expected a string, found a number");
}

TEST(PlanFile, WithAWrongHeaderIsRejected) {
  expect_error(plan_with(R"(,"actions":[])"), "budget_bytes", "missing");
  expect_error(plan_with(R"(,"budget_bytes":1)"), "actions", "missing");
  expect_error(plan_with(R"(,"budget_bytes":-1,"actions":[])"), "budget_bytes", "-1");
  expect_error(plan_with(R"(,"budget_bytes":1.5,"actions":[])"), "budget_bytes", "whole number");
  expect_error(plan_with(R"(,"budget_bytes":1,"budget":2,"actions":[])"), "budget", "unknown key");
  expect_error(
      plan_with(
          R"(,"budget_bytes":1,"actions":[],"tiers":[{"name":"a","in_budget":true,"values":[[1,0,0,0],[0,0,0,0]]}])"),
      "tiers[0].values[1]", "ascend");
  expect_error(R"({"format":"reprise-plan","version":3})", "version", "3 is not supported");
  expect_error(R"({"format":"reprise-trace","version":1,"operators":[],"values":[],"moments":[]})", "format",
               "this is a trace, not a plan");
  expect_error(R"({"cost":[],"size":[],"edges":[]})", "", "this is a graph, not a plan");
  expect_error("{}", "", "neither");
}

TEST(PlanFile, IsWrittenAndReadAndNamedInErrors) {
  const testing::TemporaryFolder folder;
  const Plan plan = random_plan(1);
  write_plan(folder / "plan.json", plan);
  EXPECT_EQ(read_plan(folder / "plan.json"), plan);
  folder.write("cut.json", to_json(plan).substr(0, 60));
  try {
    static_cast<void>(read_plan(folder / "cut.json"));
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_EQ(error.file(), (folder / "cut.json").string());
  }
  EXPECT_THROW(write_plan(folder / "no/plan.json", plan), Error);
}

TEST(PlanFile, IsNotWrittenWithIdsThatCannotBe) {
  EXPECT_THROW(static_cast<void>(to_json(Plan{1, {}, {Action::run(-1)}})), BadInput);
  EXPECT_THROW(static_cast<void>(to_json(Plan{-1, {}, {}})), BadInput);
}

}  // namespace
}  // namespace reprise::plan_file_test
