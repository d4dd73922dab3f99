// reprise plan and reprise simulate, as a user runs them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reprise/plan/planner.h"
#include "reprise/trace/files.h"
#include "step_file.h"

namespace reprise {
namespace {

using testing::one_line;
using testing::Outcome;
using testing::run_command;
using Json = nlohmann::json;

class PlanCommand : public testing::StepFile {
 protected:
  [[nodiscard]] Outcome plan(const std::vector<std::string>& arguments) const { return run_on_it("plan", arguments); }
};

TEST_F(PlanCommand, PrintsOneLineOfJsonWithAllKeysAndNothingElse) {
  const Outcome outcome = plan({"--budget", "0.8x", "--moves", "2000", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(one_line(outcome.out)) << outcome.out;
  EXPECT_EQ(outcome.err, "");
  const Json json = Json::parse(outcome.out);
  for (const char* key :
       {"status", "planner", "cost", "cost_ratio", "peak_bytes", "budget_bytes", "keep_everything_peak_bytes",
        "floor_bytes", "lower_bound_ratio", "gap", "replays", "seconds"}) {
    EXPECT_TRUE(json.contains(key) && !json[key].is_null()) << key;
  }
  const Bytes everything = keep_everything(trace_).budget;
  EXPECT_EQ(json["keep_everything_peak_bytes"], everything);
  EXPECT_EQ(json["budget_bytes"], everything * 8 / 10);
  EXPECT_LE(json["peak_bytes"], json["budget_bytes"]);
}

TEST_F(PlanCommand, PrintsTextForPeople) {
  const Outcome outcome = plan({"--budget", "1x"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("overhead    none"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(PlanCommand, AnInfeasibleBudgetExitsWithThreeAndTheSmallestOneThenWorks) {
  const Outcome outcome = plan({"--budget", "1", "--moves", "2000", "--json"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(one_line(outcome.out));
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["status"], "infeasible");
  EXPECT_TRUE(json["cost"].is_null());
  const std::string smallest = std::to_string(json["smallest_feasible_bytes"].get<Bytes>());
  const Outcome again = plan({"--budget", smallest, "--time-limit", "1", "--json"});
  EXPECT_EQ(again.code, 0) << again.out;
}

TEST_F(PlanCommand, AnInfeasibleBudgetWritesNoFile) {
  EXPECT_EQ(plan({"--budget", "1", "--moves", "100", "--output", path("plan.json")}).code, 3);
  EXPECT_FALSE(std::filesystem::exists(path("plan.json")));
}

TEST_F(PlanCommand, TheSameMovesAndSeedGiveTheSameFile) {
  for (const char* name : {"first.json", "second.json"}) {
    EXPECT_EQ(plan({"--budget", "0.7x", "--moves", "3000", "--seed", "5", "--output", path(name)}).code, 0);
  }
  EXPECT_EQ(folder_.read("first.json"), folder_.read("second.json"));
  EXPECT_NE(folder_.read("first.json"), "");
}

TEST_F(PlanCommand, EveryPlannerEitherPlansOrSaysInOneLineWhyNot) {
  for (const PlannerInfo& planner : planners()) {
    std::vector<std::string> arguments = {"--budget",     "1x",  "--planner", std::string(planner.name),
                                          "--time-limit", "0.2", "--json"};
    if (planner.name == "segments") arguments.insert(arguments.end(), {"--segments", "3"});
    const Outcome outcome = plan(arguments);
    if (outcome.code == 2) {
      EXPECT_TRUE(one_line(outcome.err)) << planner.name << outcome.err;
      EXPECT_EQ(outcome.out, "");
    } else {
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << planner.name << outcome.err;
      EXPECT_EQ(Json::parse(outcome.out)["planner"], planner.name);
    }
  }
}

TEST_F(PlanCommand, AnOptionOfOnePlannerChoosesIt) {
  EXPECT_EQ(Json::parse(plan({"--budget", "1x", "--segments", "3", "--json"}).out)["planner"], "segments");
  EXPECT_EQ(Json::parse(plan({"--budget", "1x", "--every", "3", "--json"}).out)["planner"], "every");
  const Outcome outcome = plan({"--budget", "1x", "--segments", "3", "--planner", "lru"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "reprise plan: --segments is for the planner segments, not for lru\n");
}

TEST_F(PlanCommand, APlanIsProvenAgainBySimulate) {
  const Json planned =
      Json::parse(plan({"--budget", "0.7x", "--moves", "3000", "--json", "--output", path("plan.json")}).out);
  const Outcome outcome = run_command({"simulate", file_, path("plan.json"), "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(one_line(outcome.out));
  const Json proven = Json::parse(outcome.out);
  EXPECT_EQ(proven["valid"], true);
  for (const char* key : {"cost", "cost_ratio", "peak_bytes", "budget_bytes", "replays", "puts", "gets", "actions"}) {
    EXPECT_EQ(proven[key], planned[key]) << key;
  }
  const Outcome text = run_command({"simulate", file_, path("plan.json")});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("a valid plan"), std::string::npos) << text.out;
}

TEST_F(PlanCommand, AnEditedPlanIsRefusedWithTheRule) {
  EXPECT_EQ(plan({"--budget", "1x", "--output", path("plan.json")}).code, 0);
  Plan edited = read_plan(path("plan.json"));
  edited.actions.pop_back();
  while (edited.actions.back().kind != Action::Kind::run) edited.actions.pop_back();
  edited.actions.pop_back();
  write_plan(path("edited.json"), edited);

  const Outcome text = run_command({"simulate", file_, path("edited.json")});
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.out.find("(rule: complete)"), std::string::npos) << text.out;
  const Outcome json = run_command({"simulate", file_, path("edited.json"), "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_TRUE(one_line(json.out));
  EXPECT_EQ(Json::parse(json.out)["broken"]["rule"], "complete");
}

}  // namespace
}  // namespace reprise
