// reprise fit, as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/well_formed.h"
#include "reprise/trace/files.h"
#include "reprise_process.h"
#include "support/chains.h"

namespace reprise {
namespace {

using testing::one_line;
using testing::Outcome;
using testing::run_command;
using Json = nlohmann::json;

class FitCommand : public ::testing::Test {
 protected:
  // A chain whose states grow with the size, of 100 bytes each.
  std::string write(std::int64_t size, int layers = 8) const {
    testing::ChainForm form =
        testing::equal_layers(layers, {.state = 100 * size, .forward_cost = 1.0 + 2.0 * double(size)});
    form.parameters = 5000;
    form.events = true;
    const auto path = folder_ / (std::to_string(size) + "_" + std::to_string(layers) + ".json");
    write_trace(path, testing::chain_trace(form));
    return path.string();
  }

  [[nodiscard]] Outcome fit(std::vector<std::string> more) const {
    more.insert(more.begin(), {"fit", write(2), write(4), "--time-limit", "0.5"});
    return run_command(more);
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(FitCommand, PrintsATableAndAWordOfAdvice) {
  const Outcome outcome = fit({"--sizes", "2,4", "--budget", "9000"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("per sample"), std::string::npos);
  EXPECT_NE(outcome.out.find("\nThe largest size that fits within "), std::string::npos) << outcome.out;
}

TEST_F(FitCommand, PrintsOneLineOfJsonAndDrawsAPictureOfIt) {
  const std::string picture = (folder_ / "fit.svg").string();
  const Outcome outcome = fit({"--sizes", "2,4", "--budget", "9000", "--json", "--output", picture});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(one_line(outcome.out)) << outcome.out;
  const Json json = Json::parse(outcome.out);
  EXPECT_GE(json["largest"], 4);
  const std::string svg = folder_.read("fit.svg");
  EXPECT_EQ(testing::xml_problem(svg), "");
  EXPECT_NE(svg.find("largest: " + std::to_string(json["largest"].get<int>())), std::string::npos);
}

TEST_F(FitCommand, PlansTheSizesThatAreWanted) {
  const Json json = Json::parse(fit({"--sizes", "2,4", "--budget", "9000", "--wanted", "3,1000", "--json"}).out);
  ASSERT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["points"][0]["size"], 3);
  EXPECT_EQ(json["points"][1]["status"], "infeasible");
  EXPECT_EQ(json["largest"], 3);
}

TEST_F(FitCommand, TakesThreeTraces) {
  const Outcome outcome = run_command({"fit", write(2), write(8), write(4), "--sizes", "2,8,4", "--budget", "1GiB",
                                       "--at-most", "20", "--time-limit", "0.3", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["recorded"], (std::vector<int>{2, 4, 8}));
  EXPECT_EQ(Json::parse(outcome.out)["largest"], 20);
}

TEST_F(FitCommand, EndsWithItsOwnCodeIfNothingFits) {
  const Outcome outcome = fit({"--sizes", "2,4", "--budget", "4000"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("Nothing was found to fit 3.91 KiB: even size 1 needs"), std::string::npos) << outcome.out;
}

TEST_F(FitCommand, NamesTheOperatorInWhichTracesDiffer) {
  const Outcome outcome = run_command({"fit", write(2), write(4, 9), "--sizes", "2,4", "--budget", "9000"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
  EXPECT_NE(outcome.err.find("moments["), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("at size 2"), std::string::npos) << outcome.err;
}

TEST_F(FitCommand, RefusesSizesThatAreNone) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const Outcome outcome = fit(arguments);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  refused({"--budget", "9000"}, "--sizes is missing");
  refused({"--sizes", "2,4"}, "--budget is missing");
  refused({"--sizes", "2", "--budget", "9000"}, "--sizes: '2' has 1 sizes, and there are 2 traces");
  refused({"--sizes", "2,x", "--budget", "9000"}, "--sizes: '2,x' is no list of sizes");
  refused({"--sizes", "2,", "--budget", "9000"}, "--sizes: '2,' is no list of sizes");
  refused({"--sizes", "2,2", "--budget", "9000"}, "there are two traces of size 2");
  refused({"--sizes", "2,4", "--budget", "lots"}, "--budget: 'lots' is not an amount of bytes");
  refused({"--sizes", "2,4", "--budget", "9000", "--wanted", "0"}, "--wanted: '0' is no list of sizes");
  refused({"--sizes", "2,4", "--budget", "9000", "--at-most", "0"}, "--at-most: '0' is no whole number");
}

}  // namespace
}  // namespace reprise
