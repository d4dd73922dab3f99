// reprise report and reprise inspect --perfetto, as a user runs them.
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

class ReportCommand : public testing::StepFile {
 protected:
  [[nodiscard]] Outcome report(const std::vector<std::string>& arguments) const {
    return run_on_it("report", arguments);
  }
  [[nodiscard]] Json numbers(const std::string& name) const {
    const std::string page = folder_.read(name), before = "id=\"reprise-numbers\">";
    const std::size_t from = page.find(before) + before.size();
    return Json::parse(page.substr(from, page.find("</script>", from) - from));
  }
  void save_plan() const {
    const Outcome planned =
        run_command({"plan", file_, "--budget", "0.8x", "--moves", "2000", "--output", path("plan.json")});
    ASSERT_EQ(planned.code, 0) << planned.err;
  }
};

TEST_F(ReportCommand, MakesAPageOfAPlanAndPrintsItsName) {
  save_plan();
  const Outcome outcome =
      report({path("plan.json"), "--no-curve", "--output", path("page.html"), "--title", "My <net>"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, path("page.html") + "\n");
  EXPECT_EQ(outcome.err, "");
  const Json shown = numbers("page.html");
  const Json proven = Json::parse(run_command({"simulate", file_, path("plan.json"), "--json"}).out);
  EXPECT_EQ(shown["peak_after_bytes"], proven["peak_bytes"]);
  EXPECT_EQ(shown["peak_before_bytes"], proven["keep_everything_peak_bytes"]);
  EXPECT_EQ(shown["budget_bytes"], proven["budget_bytes"]);
  EXPECT_EQ(shown["replays"], proven["replays"]);
  EXPECT_TRUE(shown["curve"].is_null());
  EXPECT_NE(folder_.read("page.html").find("<h1>My &lt;net&gt;</h1>"), std::string::npos);
}

TEST_F(ReportCommand, PlansForTheBudgetOrElseForTheKnee) {
  EXPECT_EQ(report({"--budget", "0.9x", "--time-limit", "0.4", "--no-curve", "--output", path("budget.html")}).code, 0);
  const Bytes everything = keep_everything(trace_).budget;
  EXPECT_EQ(numbers("budget.html")["budget_bytes"], everything * 9 / 10);
  EXPECT_EQ(report({"--time-limit", "1", "--output", path("knee.html")}).code, 0);
  const Json knee = numbers("knee.html");
  ASSERT_FALSE(knee["curve"].is_null());
  EXPECT_EQ(knee["budget_bytes"],
            knee["curve"]["knee_bytes"].is_null() ? Json(everything / 2) : knee["curve"]["knee_bytes"]);
}

TEST_F(ReportCommand, ABudgetThatNoPlanFitsExitsWithThreeAndWritesNoFile) {
  const Outcome outcome = report({"--budget", "1", "--time-limit", "0.4", "--no-curve", "--output", path("page.html")});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
  EXPECT_NE(outcome.err.find("the smallest for which one was found is"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("page.html")));
}

TEST_F(ReportCommand, RefusesWhatMakesNoSense) {
  save_plan();
  const auto expect_refused = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const Outcome outcome = report(arguments);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  expect_refused({path("plan.json"), "--budget", "1x"}, "--budget is for making a plan, but PLAN is one already");
  expect_refused({"--budget", "lots", "--time-limit", "100"}, "--budget: 'lots' is not an amount of bytes");
  expect_refused({"--output", path("no") + "/page.html", "--time-limit", "100"}, "its folder does not exist");
  Plan other = read_plan(path("plan.json"));
  other.budget = 1;
  write_plan(path("other.json"), other);
  expect_refused({path("other.json"), "--no-curve", "--output", path("page.html")}, "(rule: budget)");
}

TEST_F(ReportCommand, HelpExplainsEveryOption) {
  const std::string help = run_command({"report", "--help"}).out;
  for (const char* part : {"Usage: reprise report FILE [PLAN] [OPTION ...]", "--budget BYTES", "--output FILE",
                           "--time-limit SECONDS", "--title TEXT", "--no-curve", "Examples:", "Exit codes:"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part;
  }
}

TEST_F(ReportCommand, InspectWritesATimelineOfAPlanOrOfKeepingEverything) {
  save_plan();
  const auto events_on = [&](const std::string& name, int track) {
    std::size_t found = 0;
    const Json timeline = Json::parse(folder_.read(name));
    for (const Json& event : timeline["traceEvents"]) {
      found += event["ph"] == "X" && event["tid"] == track;
    }
    return found;
  };
  const Outcome before = run_command({"inspect", file_, "--perfetto", path("before.json")});
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_NE(before.out.find("operators"), std::string::npos);
  EXPECT_EQ(events_on("before.json", 1), trace_.moments.size());
  EXPECT_EQ(events_on("before.json", 2), 0u);
  EXPECT_EQ(run_command({"inspect", file_, path("plan.json"), "--perfetto", path("after.json")}).code, 0);
  EXPECT_EQ(events_on("after.json", 2), simulate(trace_, read_plan(path("plan.json"))).replays);
  const Outcome alone = run_command({"inspect", file_, path("plan.json")});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("PLAN is for --perfetto FILE"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace reprise
