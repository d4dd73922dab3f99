// A fit as a table, a picture, JSON and a word of advice.
#include "reprise/report/fit_views.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reprise/report/json.h"
#include "well_formed.h"

namespace reprise::fit_views_test {
namespace {

constexpr Bytes GiB = Bytes{1} << 30;

FitPoint planned(std::int64_t size, double plain, double overhead, bool recorded = false) {
  FitPoint point{size, recorded, {}};
  point.result.status = PlanStatus::feasible;
  point.result.plain_cost = plain;
  point.result.keep_everything_peak = size * GiB / 8;
  point.result.simulation.cost = plain * (1 + overhead);
  point.result.simulation.replays = static_cast<std::size_t>(100 * overhead);
  return point;
}

Fit usual_fit() {
  Fit fit;
  fit.budget = 2 * GiB;
  fit.recorded = {4, 8};
  fit.points = {planned(4, 60, 0, true), planned(8, 100, 0, true), planned(16, 180, 0), planned(32, 340, 0.25)};
  FitPoint beyond{33, false, {}};
  beyond.result.plain_cost = 350;
  beyond.result.keep_everything_peak = 33 * GiB / 8;
  beyond.result.smallest_feasible = 3 * GiB;
  fit.points.push_back(beyond);
  fit.largest = 3;
  fit.cheapest = 2;
  return fit;
}

TEST(FitTable, HasALineForEverySize) {
  const std::string text = to_text(usual_fit());
  EXPECT_NE(text.find("          4r  512.00 MiB       0 %          15        0"), std::string::npos) << text;
  EXPECT_NE(text.find("*        16     2.00 GiB       0 %       11.25        0"), std::string::npos) << text;
  EXPECT_NE(text.find(">        32     4.00 GiB      25 %       13.28       25"), std::string::npos) << text;
  EXPECT_NE(text.find("         33     4.12 GiB  does not fit: needs 3.00 GiB"), std::string::npos) << text;
}

TEST(FitAdvice, NamesTheLargestAndTheCheapestSize) {
  EXPECT_EQ(advice(usual_fit()),
            "The largest size that fits within 2.00 GiB is 32, at 13.28 per sample, 25 % of overhead included; size 16 "
            "costs least, 11.25 per sample.");
  Fit fit = usual_fit();
  fit.cheapest = 3;
  fit.reached_the_end = true;
  EXPECT_EQ(advice(fit),
            "The largest size that was looked at within 2.00 GiB is 32, at 13.28 per sample, 25 % of overhead "
            "included.");
}

TEST(FitAdvice, SaysWhatTheSmallestSizeWouldNeed) {
  Fit fit = usual_fit();
  fit.points = {fit.points.back()};
  fit.largest.reset();
  fit.cheapest.reset();
  EXPECT_EQ(advice(fit), "Nothing was found to fit 2.00 GiB: even size 33 needs 3.00 GiB.");
  fit.points.clear();
  EXPECT_EQ(advice(fit), "Nothing was planned.");
}

TEST(FitPicture, ContainsTheNumbersAndIsWellFormed) {
  const std::string svg = to_svg(usual_fit(), "a <net>");
  EXPECT_EQ(testing::xml_problem(svg), "") << svg;
  for (const char* part : {"a &lt;net&gt;", "within 2.00 GiB", "largest: 32", "cheapest: 16",
                           "size 32 (predicted): 13.28 per sample, overhead 25 %, 25 replays",
                           "size 4: 15 per sample, overhead 0 %, 0 replays", "prefers-color-scheme: dark"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
}

TEST(FitPicture, IsDrawnForEveryFit) {
  Fit nothing = usual_fit();
  nothing.points = {nothing.points.back()};
  nothing.largest.reset();
  nothing.cheapest.reset();
  Fit free = usual_fit();
  for (FitPoint& point : free.points) point.result.plain_cost = point.result.simulation.cost = 0;
  Fit empty;
  for (const Fit& fit : {nothing, free, empty}) {
    const std::string svg = to_svg(fit, "");
    EXPECT_EQ(testing::xml_problem(svg), "");
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    (void)to_text(fit);
  }
}

TEST(FitJson, HasEveryNumberAndNullWhereThereIsNone) {
  const auto json = nlohmann::json::parse(json_line(usual_fit()));
  EXPECT_EQ(json["budget_bytes"], 2 * GiB);
  EXPECT_EQ(json["recorded"], (std::vector<int>{4, 8}));
  EXPECT_EQ(json["largest"], 32);
  EXPECT_EQ(json["cheapest"], 16);
  ASSERT_EQ(json["points"].size(), 5u);
  EXPECT_EQ(json["points"][3]["cost_per_sample"], 340 * 1.25 / 32);
  EXPECT_EQ(json["points"][3]["plain_cost_per_sample"], 340.0 / 32);
  EXPECT_EQ(json["points"][3]["recorded"], false);
  EXPECT_TRUE(json["points"][3]["smallest_feasible_bytes"].is_null());
  EXPECT_EQ(json["points"][4]["status"], "infeasible");
  EXPECT_TRUE(json["points"][4]["cost_per_sample"].is_null());
  EXPECT_EQ(json["points"][4]["smallest_feasible_bytes"], 3 * GiB);
  EXPECT_TRUE(nlohmann::json::parse(json_line(Fit()))["largest"].is_null());
}

}  // namespace
}  // namespace reprise::fit_views_test
