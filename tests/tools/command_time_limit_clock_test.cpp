// Time limits of commands, by the clock on the wall.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reprise/trace/files.h"
#include "reprise_process.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

using testing::Outcome;
using testing::run_command;
using Json = nlohmann::json;

class TimeLimit : public ::testing::Test {
 protected:
  // A recorded step of this size.
  [[nodiscard]] std::string step(std::uint64_t seed, int layers) const {
    const std::string file = (folder_ / "step.json").string();
    write_trace(file, testing::random_training_step(seed, layers));
    return file;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(TimeLimit, IsKeptByPlan) {
  const Outcome outcome = run_command({"plan", step(8, 20), "--budget", "0.6x", "--time-limit", "0.5", "--json"});
  EXPECT_LT(Json::parse(outcome.out)["seconds"], 1.0);
}

TEST_F(TimeLimit, IsKeptByPlanWithMovesTooWhenItIsGiven) {
  const Outcome outcome =
      run_command({"plan", step(8, 20), "--budget", "0.6x", "--moves", "1000000000", "--time-limit", "0.5", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(Json::parse(outcome.out)["seconds"], 1.5);
  EXPECT_EQ(Json::parse(outcome.out)["cancelled"], true);
}

// The integer program of this trace takes minutes.
TEST_F(TimeLimit, OfFewMovesIsShortAlsoWhereNoClockIsRead) {
  const std::string file = (folder_ / "example.json").string();
  ASSERT_EQ(run_command({"example", "--output", file}, 0.5).code, 0);
  const std::vector<std::string> arguments = {"plan", file, "--budget", "0.5x", "--moves", "200", "--json"};
  const Json one = Json::parse(run_command(arguments).out), two = Json::parse(run_command(arguments).out);
  EXPECT_LT(one["seconds"], 20.0);
  EXPECT_LE(one["moves"], 300);
  EXPECT_EQ(one["cancelled"], false);
  for (const char* same : {"cost", "lower_bound", "moves"}) EXPECT_EQ(one[same], two[same]) << same;
}

TEST_F(TimeLimit, IsKeptByCurve) {
  const Outcome outcome = run_command({"curve", step(7, 14), "--time-limit", "1", "--json"});
  EXPECT_LT(Json::parse(outcome.out)["seconds"], 1.5);
}

}  // namespace
}  // namespace reprise
