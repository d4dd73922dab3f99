// The curve as a table, a picture and a word of advice.
#include "reprise/report/curve_views.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "examples.h"
#include "well_formed.h"

namespace reprise {
namespace {

using testing::hand_made_curve;
using testing::xml_problem;

constexpr Bytes GiB = Bytes{1} << 30;

Curve usual_curve() {
  Curve curve = hand_made_curve({{2 * GiB, 0.34}, {4 * GiB, 0.12}, {6 * GiB, 0.03}, {8 * GiB, 0.01}, {10 * GiB, 0}});
  curve.knee = 1;
  return curve;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(CurveTable, HasALineForEveryPointAndMarksTheKnee) {
  const std::string text = to_text(usual_curve());
  EXPECT_NE(text.find("    2.00 GiB   0.20      34 %      17 %       34"), std::string::npos) << text;
  EXPECT_NE(text.find("*   4.00 GiB   0.40      12 %     6.0 %       12"), std::string::npos) << text;
  EXPECT_NE(text.find("   10.00 GiB   1.00       0 %   optimal        0\n"), std::string::npos) << text;
}

TEST(CurveTable, SaysWhatWasNotPlanned) {
  Curve curve = usual_curve();
  curve.points[2].result.reset();
  EXPECT_NE(to_text(curve).find("6.00 GiB   0.60    not planned"), std::string::npos);
}

TEST(CurveTable, TellsEachNoteOnce) {
  Curve curve = usual_curve();
  curve.points[0].result->notes = curve.points[1].result->notes = {"HiGHS was not found: the bound is weaker"};
  EXPECT_EQ(occurrences(to_text(curve), "HiGHS"), 1u);
}

TEST(CurveTable, HasAColumnForTiersAndTheirNamesOnlyIfTheyAreUsed) {
  Curve curve = usual_curve();
  EXPECT_EQ(to_text(curve).find("puts"), std::string::npos);
  for (const std::size_t i : {0, 1}) {
    PlanResult& result = *curve.points[i].result;
    result.plan.tiers = {
        {"packed", std::nullopt, true, {}}, {"disk", std::nullopt, false, {}}, {"host", std::nullopt, false, {}}};
    result.plan.actions = {Action::put(0, 0), Action::put(1, 2)};
    result.simulation.puts = 2;
    result.simulation.tier_peaks = {1, 0, 1};
  }
  EXPECT_NE(to_text(curve).find("  puts: values put into a tier in one step: 'packed', 'host'.\n"), std::string::npos)
      << to_text(curve);
}

TEST(Advice, NamesTheKneeAndWhereTheOverheadPassesAFifth) {
  EXPECT_EQ(advice(usual_curve()), "At 4.00 GiB (0.40 of everything) the overhead is 12 %; below that it passes 20 %.");
  Curve curve = usual_curve();
  curve.knee = 2;
  EXPECT_EQ(advice(curve), "At 6.00 GiB (0.60 of everything) the overhead is 3.0 %; below 4.00 GiB it passes 20 %.");
}

TEST(Advice, SaysSoIfTheSmallestBudgetIsCheap) {
  Curve curve = hand_made_curve({{2 * GiB, 0.08}, {6 * GiB, 0.01}, {10 * GiB, 0}});
  curve.knee = 1;
  EXPECT_EQ(advice(curve),
            "At 6.00 GiB (0.60 of everything) the overhead is 1.0 %; even at 2.00 GiB, the smallest that was found to "
            "work, it is 8.0 %.");
  curve.knee.reset();
  EXPECT_EQ(advice(curve),
            "At 2.00 GiB (0.20 of everything) the overhead is 8.0 %, and nothing smaller was found to work.");
}

TEST(Advice, SaysSoIfNothingCanBeSavedOrNothingIsLost) {
  EXPECT_EQ(advice(hand_made_curve({{10 * GiB, 0}})),
            "Found no plan that needs less than 10.00 GiB, which is what keeping everything needs.");
  EXPECT_EQ(advice(hand_made_curve({{5 * GiB, 0}, {10 * GiB, 0}})),
            "At 5.00 GiB (0.50 of everything) there is no overhead, and nothing smaller was found to work.");
}

TEST(Advice, ClaimsNothingAboutBudgetsThatWereNotPlanned) {
  Curve curve = hand_made_curve({{2 * GiB, 1.8}, {6 * GiB, 0.1}, {10 * GiB, 0}});
  curve.points[1].result.reset();
  EXPECT_EQ(advice(curve), "At 2.00 GiB (0.20 of everything) the overhead is 180 %.");
}

TEST(CurvePicture, IsWellFormedAndNeedsNothingElse) {
  const std::string svg = to_svg(usual_curve(), "a <net> & \"more\"");
  EXPECT_EQ(xml_problem(svg), "") << svg;
  EXPECT_NE(svg.find("a &lt;net&gt; &amp; &quot;more&quot;"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_EQ(occurrences(svg, "http"), 1u);  // the name of the format itself
}

TEST(CurvePicture, ContainsTheNumbers) {
  const std::string svg = to_svg(usual_curve(), "net");
  EXPECT_NE(svg.find("4.00 GiB (0.40 of everything): overhead 12 %, at least 6.0 %, 12 replays"), std::string::npos);
  EXPECT_NE(svg.find("knee: 4.00 GiB, 12 %"), std::string::npos);
  EXPECT_NE(svg.find("floor: 1.00 GiB"), std::string::npos);
  EXPECT_NE(svg.find("everything needs 10.00 GiB"), std::string::npos);
  for (const char* tick : {">0 %<", ">10 %<", ">30 %<", ">2<", ">10<"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  EXPECT_EQ(occurrences(svg, "<title>"), 6u);  // the picture and five points
}

TEST(CurvePicture, CutsOffAnOverheadThatIsOutOfProportion) {
  Curve curve = usual_curve();
  curve.points[0].result->simulation.cost = 100 * (1 + 15.0);
  const std::string svg = to_svg(curve, "net");
  EXPECT_NE(svg.find(">1500 %<"), std::string::npos);
  EXPECT_NE(svg.find(">20 %<"), std::string::npos);
  EXPECT_EQ(svg.find(">1000 %<"), std::string::npos);
}

TEST(CurvePicture, IsDrawnForEveryCurve) {
  Curve unplanned = usual_curve();
  unplanned.points[2].result.reset();
  for (const Curve& curve :
       {unplanned, hand_made_curve({{10, 0}}), hand_made_curve({{0, 0}}), hand_made_curve({{1, 1e-7}, {2, 0}}),
        hand_made_curve({{Bytes{1} << 58, 3}, {Bytes{1} << 59, 0}})}) {
    const std::string svg = to_svg(curve, "");
    EXPECT_EQ(xml_problem(svg), "");
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

}  // namespace
}  // namespace reprise
