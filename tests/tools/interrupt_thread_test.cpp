// Ctrl-C: the command shows what it has.
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

class Interrupted : public ::testing::Test {
 protected:
  // Large enough that nothing is proven before the interrupt comes.
  [[nodiscard]] std::string large() const {
    const std::string file = (folder_ / "large.json").string();
    write_trace(file, testing::random_graph(3, 400));
    return file;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(Interrupted, PlanReturnsTheBestSoFar) {
  const Outcome outcome = run_command({"plan", large(), "--budget", "0.9x", "--time-limit", "300", "--json"}, 1.5);
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.code << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["cancelled"], true);
}

TEST_F(Interrupted, CurveShowsWhatThereIs) {
  const Outcome outcome = run_command({"curve", large(), "--time-limit", "300", "--json"}, 1.5);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["cancelled"], true);
}

// It takes six seconds, which need not be waited for.
TEST_F(Interrupted, ExampleShowsACurveAndSavesATraceToPlayWith) {
  const std::string saved = (folder_ / "example.json").string();
  const Outcome outcome = run_command({"example", "--output", saved}, 2.5);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("of everything) the overhead is"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("reprise plan " + saved + " --budget 0.5x"), std::string::npos) << outcome.out;
  const Trace trace = read_trace(saved);
  EXPECT_EQ(trace.operators.size(), 292u);
  EXPECT_EQ(trace.tiers.size(), 1u);
  EXPECT_EQ(run_command({"plan", saved, "--budget", "0.6x", "--time-limit", "1"}).code, 0);
}

}  // namespace
}  // namespace reprise
