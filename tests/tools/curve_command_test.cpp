// reprise curve, inspect and example, as a user runs them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/well_formed.h"
#include "reprise/plan/planner.h"
#include "step_file.h"

namespace reprise {
namespace {

using testing::one_line;
using testing::Outcome;
using testing::run_command;
using Json = nlohmann::json;

class CurveCommand : public testing::StepFile {
 protected:
  CurveCommand() : StepFile(testing::random_training_step(7, 14)) {}
};

TEST_F(CurveCommand, PrintsATableAndAWordOfAdvice) {
  const Outcome outcome = run_command({"curve", file_, "--points", "4", "--time-limit", "0.3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("overhead"), std::string::npos);
  EXPECT_NE(outcome.out.find("\nAt "), std::string::npos) << outcome.out;
}

TEST_F(CurveCommand, PrintsOneLineOfJson) {
  const Outcome outcome = run_command({"curve", file_, "--points", "4", "--time-limit", "0.3", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(one_line(outcome.out)) << outcome.out;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["points"].size(), 4u);
  EXPECT_EQ(json["points"][3]["budget_bytes"], keep_everything(trace_).budget);
  EXPECT_EQ(json["points"][3]["cost_ratio"], 1.0);
  EXPECT_EQ(json["points"][0]["budget_bytes"], json["smallest_feasible_bytes"]);
}

TEST_F(CurveCommand, DrawsAPictureOfTheSameNumbers) {
  const Outcome outcome =
      run_command({"curve", file_, "--points", "4", "--time-limit", "0.3", "--json", "--output", path("curve.svg")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string svg = folder_.read("curve.svg");
  EXPECT_EQ(testing::xml_problem(svg), "");
  const std::string advice = Json::parse(outcome.out)["advice"];
  EXPECT_NE(svg.find(advice.substr(0, advice.find('<'))), std::string::npos) << svg;
}

TEST_F(CurveCommand, InspectShowsWhatIsInATrace) {
  const Outcome text = run_command({"inspect", file_});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("Worth most to evict"), std::string::npos) << text.out;
  const Outcome json = run_command({"inspect", file_, "--json"});
  EXPECT_EQ(json.code, 0);
  EXPECT_TRUE(one_line(json.out));
  EXPECT_EQ(Json::parse(json.out)["moments"], trace_.moments.size());
}

TEST_F(CurveCommand, AGraphFileIsNamedAfterItsFile) {
  const std::string graph =
      folder_.write("tiny.json", R"({"cost":[1,2,1],"size":[10,20,30],"edges":[[0,1],[1,2],[0,2]]})");
  EXPECT_EQ(Json::parse(run_command({"inspect", graph, "--json"}).out)["name"], "tiny");
}

}  // namespace
}  // namespace reprise
