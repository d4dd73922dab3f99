// The HTML page: its numbers are the library's, names are harmless, and it stays small.
#include "reprise/report/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/layers.h"
#include "report/page_parts.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using Json = nlohmann::json;

constexpr std::size_t MiB = std::size_t{1} << 20;

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t from = text.find(before);
  if (from == std::string::npos) return "";
  const std::size_t begin = from + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

Json numbers_of(const std::string& page) {
  return Json::parse(between(page, "<script type=\"application/json\" id=\"reprise-numbers\">", "</script>"));
}

// Every number that is shown stands in the JSON under its key.
void expect_shown_as_in_json(const std::string& page) {
  const Json numbers = numbers_of(page);
  std::size_t found = 0;
  for (std::size_t at = page.find("<data data-key=\""); at != std::string::npos;
       at = page.find("<data data-key=\"", at + 1)) {
    const std::string key = between(page.substr(at, 200), "data-key=\"", "\"");
    const std::string value = between(page.substr(at, 200), "value=\"", "\"");
    ASSERT_TRUE(numbers.contains(key)) << key;
    const Json& number = numbers[key];
    EXPECT_EQ(std::stod(value), number.is_boolean() ? number.get<bool>() : number.get<double>()) << key;
    ++found;
  }
  EXPECT_GE(found, 3u);
}

class Page : public ::testing::Test {
 protected:
  const Trace trace_ = testing::random_training_step(8, 20);
  const PlanResult result_ =
      make_plan(trace_, {.budget = parse_budget("0.8x", keep_everything(trace_).budget), .moves = 2000});
};

TEST_F(Page, HasTheNumbersOfTheInterpreter) {
  const std::string page = to_html({.trace = &trace_, .plan = &result_.plan});
  const Json numbers = numbers_of(page);
  EXPECT_EQ(numbers["budget_bytes"], result_.budget);
  EXPECT_EQ(numbers["peak_before_bytes"], result_.keep_everything_peak);
  EXPECT_EQ(numbers["peak_after_bytes"], result_.simulation.peak);
  EXPECT_NEAR(numbers["overhead"].get<double>(), result_.cost_ratio() - 1, 1e-12);
  EXPECT_EQ(numbers["replays"], result_.simulation.replays);
  EXPECT_EQ(numbers["floor_bytes"], result_.floor);
  EXPECT_TRUE(numbers["curve"].is_null());
  EXPECT_TRUE(numbers["summary"].is_null());
  expect_shown_as_in_json(page);
  EXPECT_NE(page.find(format_bytes(result_.simulation.peak)), std::string::npos);
}

TEST_F(Page, ShowsThePeaksInItsPictures) {
  const Json numbers = numbers_of(to_html({.trace = &trace_, .plan = &result_.plan}));
  for (const char* side : {"before", "after"}) {
    Bytes peak = 0;
    for (const Json& column : numbers[side]["columns"]) {
      Bytes total = 0;
      for (const Json& layer : column) total += layer.get<Bytes>();
      peak = std::max(peak, total);
    }
    EXPECT_EQ(peak, numbers[side]["peak_bytes"].get<Bytes>()) << side;
    EXPECT_EQ(numbers[side]["labels"].size(), numbers[side]["columns"].size());
  }
}

TEST_F(Page, HasALaneForEveryTierOutsideOfTheBudget) {
  EXPECT_EQ(to_html({.trace = &trace_, .plan = &result_.plan}).find("data-side=\"outside\""), std::string::npos);
  testing::SmallTrace small;
  small.run({}, {10}, 2);
  small.run({}, {20}, 2);
  small.run({}, {30}, 2);
  small.event({0, 1});
  small.trace.tiers.push_back({"disk", std::nullopt, false, {{0, 12, 3, 4}}});
  small.trace.tiers.push_back({"unused", std::nullopt, false, {{0, 12, 3, 4}}});
  small.trace.tiers.push_back({"host", std::nullopt, false, {{1, 24, 3, 4}}});
  const Plan plan{90,
                  small.trace.tiers,
                  {Action::run(0), Action::put(0, 0), Action::drop(0), Action::run(1), Action::put(1, 2),
                   Action::drop(1), Action::run(2), Action::get(0, 0), Action::get(1, 2), Action::run(3)}};
  const std::string page = to_html({.trace = &small.trace, .plan = &plan});
  EXPECT_NE(page.find("<strong>On disk.</strong> Not in the budget: at most "), std::string::npos);
  EXPECT_NE(page.find("<strong>On the host.</strong> Not in the budget: at most "), std::string::npos);
  EXPECT_EQ(page.find("unused"), std::string::npos);
  for (const char* what_happens : {"</i>on disk</td>", "</i>on the host</td>"}) {
    EXPECT_NE(page.find(what_happens), std::string::npos) << what_happens;
  }
  for (const char* tile : {"<dt>On disk</dt>", "<dt>On the host</dt>"}) {
    EXPECT_NE(page.find(tile), std::string::npos) << tile;
  }
  EXPECT_EQ(page.find("<dt>Packed</dt>"), std::string::npos);
  const Json numbers = numbers_of(page);
  EXPECT_EQ(numbers["peak_in_tier_0_bytes"], 12);
  EXPECT_EQ(numbers["peak_in_tier_2_bytes"], 24);
  ASSERT_EQ(numbers["tiers"].size(), 2u);
  const Json host = {{"name", "host"}, {"in_budget", false}, {"puts", 1}, {"gets", 1}, {"peak_bytes", 24}};
  EXPECT_EQ(numbers["tiers"][1], host);
  const Json labels = numbers["after"]["labels"];
  for (const char* done : {"writing to disk", "reading from disk", "copying to the host", "copying from the host"}) {
    EXPECT_NE(std::find(labels.begin(), labels.end(), done), labels.end()) << done;
  }
  expect_shown_as_in_json(page);
}

TEST_F(Page, WithoutAPlanIsAboutKeepingEverything) {
  const std::string page = to_html({.trace = &trace_});
  const Json numbers = numbers_of(page);
  EXPECT_TRUE(numbers["peak_after_bytes"].is_null());
  EXPECT_EQ(numbers["peak_before_bytes"], result_.keep_everything_peak);
  EXPECT_EQ(page.find("data-side=\"after\""), std::string::npos);
  expect_shown_as_in_json(page);
}

TEST_F(Page, ShowsWhatASessionMeasured) {
  Summary summary;
  summary.steps = 12;
  summary.devices.front().peak_last_step = 1000;
  summary.devices.front().peak = 1100;
  summary.replays = 42;
  summary.replay_seconds = 0.1;
  summary.step_seconds = 1.1;
  summary.followed_plan = true;
  summary.verified = 7;
  summary.kept = {{"aten::evil<>", "it has \"effects\"", 1, 5}};
  const std::string page = to_html({.trace = &trace_, .plan = &result_.plan, .summary = &summary});
  const Json numbers = numbers_of(page);
  EXPECT_EQ(numbers["measured_peak_bytes"], 1000);
  EXPECT_NE(page.find("</data> <small>replaying</small>"), std::string::npos);
  EXPECT_EQ(numbers["steps"], 12);
  EXPECT_EQ(numbers["verified"], 7);
  EXPECT_EQ(numbers["followed_plan"], true);
  EXPECT_EQ(numbers["summary"]["replays"], 42);
  EXPECT_NE(page.find("aten::evil&lt;&gt;"), std::string::npos);
  expect_shown_as_in_json(page);
}

TEST_F(Page, ShowsThePeakOfEachPlace) {
  Summary summary;
  summary.steps = 12;
  summary.devices = {{"npu:0", 2000, 10, 1000, 1000, 5}, {"cpu", std::nullopt, 20, 3000, 3000, 0}};
  const std::string page = to_html({.trace = &trace_, .plan = &result_.plan, .summary = &summary});
  EXPECT_NE(page.find("Measured peak on npu:0"), std::string::npos);
  EXPECT_NE(page.find("Measured peak on cpu"), std::string::npos);
  EXPECT_EQ(numbers_of(page)["measured_peak_of_device_1_bytes"], 3000);
  expect_shown_as_in_json(page);
}

TEST_F(Page, ShowsACurveOfAnyNumberOfPointsWithItsKnee) {
  CurveOptions options;
  options.points = 6;
  options.time_limit = std::chrono::milliseconds(300);
  Curve curve = make_curve(trace_, options);
  const CurvePoint point = curve.points.front();
  while (curve.points.size() < 900) curve.points.insert(curve.points.begin(), point);
  curve.knee = 895;
  const Curve thin = thinned(curve, 40);
  EXPECT_LE(thin.points.size(), 41u);
  EXPECT_EQ(thin.points[*thin.knee].budget, curve.points[895].budget);
  EXPECT_EQ(thin.points.back().budget, curve.points.back().budget);
  const std::string page = to_html({.trace = &trace_, .plan = &result_.plan, .curve = &curve});
  EXPECT_LT(page.size(), MiB);
  EXPECT_EQ(numbers_of(page)["curve"]["knee_bytes"], curve.points[895].budget);
  EXPECT_NE(page.find("here: "), std::string::npos);
}

TEST_F(Page, NeedsNothingElse) {
  CurveOptions options;
  options.points = 4;
  options.time_limit = std::chrono::milliseconds(200);
  const Curve curve = make_curve(trace_, options);
  const std::string page = to_html({.trace = &trace_, .plan = &result_.plan, .curve = &curve});
  for (const char* loads : {"http:", "https:", "src=", "@import", "url(h", "fetch("}) {
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST_F(Page, EscapesEveryNameFromAFile) {
  Trace trace = trace_;
  const std::string evil = "</script><script>alert(1)</script><img src=x onerror=\"alert(2)\">&'";
  trace.name = evil;
  for (Operator& op : trace.operators) op.name = op.module = evil;
  for (Moment& moment : trace.moments) {
    if (!moment.runs) moment.name = evil;
  }
  const std::string page = to_html({.title = evil, .trace = &trace, .plan = &result_.plan});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("onerror=\""), std::string::npos);
  std::size_t ends = 0;
  for (std::size_t at = page.find("</script"); at != std::string::npos; at = page.find("</script", at + 1)) ++ends;
  EXPECT_EQ(ends, 2u);
  EXPECT_EQ(numbers_of(page)["name"].get<std::string>().substr(0, 17), "</script><script>");
}

TEST_F(Page, RefusesWhatItCannotShow) {
  EXPECT_THROW(static_cast<void>(to_html({})), BadInput);
  Plan broken = result_.plan;
  broken.actions.pop_back();
  while (broken.actions.back().kind != Action::Kind::run) broken.actions.pop_back();
  broken.actions.pop_back();
  try {
    static_cast<void>(to_html({.trace = &trace_, .plan = &broken}));
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("rule: complete"), std::string::npos) << error.what();
  }
}

TEST(PageOfAnyTrace, IsThereForEmptyOnesAndOnesThatCostNothing) {
  const Trace nothing;
  EXPECT_NE(to_html({.trace = &nothing}).find("</html>"), std::string::npos);
  testing::SmallTrace free;
  free.run({}, {10}, 0);
  free.run({0}, {0}, 0);
  const Plan plan = keep_everything(free.trace);
  const std::string page = to_html({.trace = &free.trace, .plan = &plan});
  for (const char* broken : {"nan", "inf\"", "inf%"}) EXPECT_EQ(page.find(broken), std::string::npos) << broken;
}

TEST(PageOfAnyTrace, SaysWhereBackwardBeginsAndNotWhereAnOperatorOnlyHasEffects) {
  testing::SmallTrace step;
  step.run({}, {}, 1);
  step.trace.operators[0].replayable = false;
  step.run({}, {10}, 39);
  step.event_with_workspace({0}, 20, 40);
  step.event({0}, 20);
  EXPECT_NE(to_html({.trace = &step.trace}).find("Backward begins at 40 %"), std::string::npos);
}

TEST(PageOfAnyTrace, SaysThatOtherBytesHaveOutgrownThePlanThatASessionFollows) {
  Trace trace = testing::random_trace(1);
  const Plan plan = keep_everything(trace);
  const Summary summary;
  const PageInput of_session{.trace = &trace, .plan = &plan, .summary = &summary};
  EXPECT_EQ(to_html(of_session).find("outgrown"), std::string::npos);
  for (Moment& moment : trace.moments) moment.other += 4096;
  EXPECT_NE(to_html(of_session).find("Other bytes have outgrown the plan"), std::string::npos);
  EXPECT_THROW((void)to_html({.trace = &trace, .plan = &plan}), BadInput) << "another one has to keep its budget";
}

TEST(PageOfAnyTrace, OfRandomOnesHasNoNumberThatIsNone) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Trace trace = testing::random_trace(seed);
    const Plan plan = keep_everything(trace);
    const std::string page = to_html({.trace = &trace, .plan = &plan});
    for (const char* broken : {"nan%", "inf%", "nan,", "Vnan", "Hnan", "Vinf"}) {
      ASSERT_EQ(page.find(broken), std::string::npos) << seed << broken;
    }
    expect_shown_as_in_json(page);
  }
}

TEST(PageOfAnyTrace, IsAtMostAMebibyteForAHundredThousandOperators) {
  // Names that are long, different, and grow when they are escaped.
  testing::SmallTrace large;
  Id before = large.outside(1000);
  for (int i = 0; i < 100000; ++i) {
    const Id moment = large.run({before}, {Bytes{1000} + i}, 1 + i % 7);
    before = large.trace.operators[*large.trace.moments[moment].runs].outputs[0];
    Operator& op = large.trace.operators.back();
    op.name = std::string(200, '"');
    for (int bit = 0; bit < 17; ++bit) op.name[static_cast<std::size_t>(bit)] = i >> bit & 1 ? '<' : '>';
    op.module = op.name + op.name;
  }
  const Plan plan = keep_everything(large.trace);
  EXPECT_LE(to_html({.trace = &large.trace, .plan = &plan}).size(), MiB);
}

}  // namespace
}  // namespace reprise
