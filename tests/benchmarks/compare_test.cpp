// What ./bench compare says about measurements.
#include <gtest/gtest.h>

#include <filesystem>

#include "compare_document.h"
#include "compare_findings.h"
#include "compare_labels.h"

namespace reprise::benchmarks {
namespace {

RivalResult rival(const std::string& label, Bytes peak, std::vector<double> ratios) {
  RivalResult result;
  result.rival = {Engine::cpp, "every 1", label, label};
  result.measured.peak = peak;
  result.measured.ratios = std::move(ratios);
  return result;
}

ReprisePoint point(Bytes budget, double ratio) {
  ReprisePoint result;
  result.budget = budget;
  result.measured.peak = budget;
  result.measured.ratios = {ratio};
  return result;
}

// A plain peak of 1000 bytes, and Reprise at three budgets.
ModelResult small_model() {
  ModelResult model;
  model.model = "gpt";
  model.cpp.peak = 1000;
  model.cpp.seconds = {1.0};
  model.cpp.again = {0.98, 1.0, 1.02};
  model.reprise = {point(700, 1.02), point(400, 1.10), point(200, 1.30)};
  return model;
}

Results results_of(ModelResult model) {
  Results results;
  results.models.push_back(std::move(model));
  return results;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CompareFindings, AreSortedByPeakAndLeaveOutWhatWasNotMeasured) {
  ModelResult model = small_model();
  model.rivals = {rival("small", 300, {1.5}), rival("failed", 0, {}), rival("large", 800, {1.1})};
  const std::vector<Finding> findings = findings_of(model);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].rival->rival.label, "large");
  EXPECT_EQ(findings[1].rival->rival.label, "small");
}

TEST(CompareFindings, CompareWithTheLargestBudgetWithinThePeakAndTheSmallestThatIsNoSlower) {
  ModelResult model = small_model();
  model.rivals = {rival("rival", 450, {1.2, 1.1, 1.4})};
  const Finding finding = findings_of(model).at(0);
  EXPECT_DOUBLE_EQ(finding.time, 1.2);
  EXPECT_EQ(finding.at_peak->budget, 400);
  EXPECT_EQ(finding.at_time->budget, 400);
  EXPECT_NEAR(finding.gain, 0.1, 1e-9);
  EXPECT_TRUE(finding.needs_less);
}

TEST(CompareFindings, ALuckyBudgetBelowASlowerOneDoesNotCount) {
  ModelResult model = small_model();
  model.reprise.push_back(point(100, 1.05));
  model.rivals = {rival("rival", 450, {1.2})};
  EXPECT_EQ(findings_of(model).at(0).at_time->budget, 400);
}

TEST(CompareFindings, ARivalBelowAllBudgetsHasNothingAtItsPeak) {
  ModelResult model = small_model();
  model.rivals = {rival("rival", 100, {1.5})};
  const Finding finding = findings_of(model).at(0);
  EXPECT_EQ(finding.at_peak, nullptr);
  EXPECT_FALSE(finding.needs_less);
}

TEST(CompareFindings, TellRoundingFromWrongGradientsAndWrongState) {
  Measured measured;
  EXPECT_EQ(soundness(measured), Soundness::exact);
  measured.gradient_error = 3e-7;
  EXPECT_EQ(soundness(measured), Soundness::rounded);
  measured.buffers_equal = false;
  EXPECT_EQ(soundness(measured), Soundness::wrong_state);
  measured.gradient_error = 0.8;
  EXPECT_EQ(soundness(measured), Soundness::wrong_gradients);
}

TEST(CompareVerdict, CountsWhereTheClaimsHoldAndNamesTheExceptions) {
  ModelResult model = small_model();
  model.rivals = {rival("beaten", 450, {1.2}), rival("quicker", 750, {1.01})};
  const std::string text = verdict(results_of(model));
  EXPECT_TRUE(contains(text, "At the peak of 1 of 2 rivals with right results Reprise is faster")) << text;
  EXPECT_TRUE(contains(text, "in the time of 1 of 2 it needs less")) << text;
  EXPECT_TRUE(contains(text, "gpt, quicker, peak 0.750, time 1.010: Reprise takes 1.020 within that peak")) << text;
  EXPECT_FALSE(contains(text, "beaten")) << text;
}

TEST(CompareVerdict, CallsClearOnlyWhatIsApart) {
  ModelResult model = small_model();
  model.rivals = {rival("far away", 450, {1.19, 1.2, 1.21}), rival("spread out", 450, {1.0, 1.2, 1.4})};
  const std::string text = verdict(results_of(model));
  EXPECT_TRUE(
      contains(text, "At the peak of 2 of 2 rivals with right results Reprise is faster** (at 1 of them clearly)"))
      << text;
}

TEST(CompareVerdict, CountsRivalsWithWrongResultsApart) {
  ModelResult model = small_model();
  model.rivals = {rival("beaten", 450, {1.2}), rival("wrong", 450, {1.05})};
  model.rivals[1].measured.gradient_error = 0.9;
  const std::string text = verdict(results_of(model));
  EXPECT_TRUE(contains(text, "At the peak of 1 of 1 rivals with right results")) << text;
  EXPECT_TRUE(contains(text, "wrong results, without an error or a warning: 1**, 1 in their gradients, 0 in")) << text;
}

TEST(CompareVerdict, SaysWhenReprisePassedABudget) {
  ModelResult model = small_model();
  EXPECT_FALSE(contains(verdict(results_of(model)), "broke"));
  model.reprise[0].measured.peak += 1;
  EXPECT_TRUE(contains(verdict(results_of(model)), "Of 3 budgets Reprise broke 1"));
}

TEST(CompareShares, OneBudgetServesRivalsThatAreClose) {
  const std::vector<double> shares = shares_to_measure({0.505, 0.5, 0.3}, /*quick=*/true);
  EXPECT_EQ(shares, (std::vector<double>{0.5, 0.3, 0.3 * 0.8}));
}

TEST(CompareShares, AreNeverFarApart) {
  const std::vector<double> shares = shares_to_measure({0.8, 0.2}, /*quick=*/false);
  for (std::size_t i = 1; i < shares.size(); ++i) {
    EXPECT_LT(shares[i], shares[i - 1]);
    EXPECT_LE(shares[i - 1] - shares[i], 0.2 + 1e-9);
  }
}

TEST(CompareLabels, DoNotCoverEachOtherWhereThereIsRoom) {
  Labels labels({0, 0, 800, 300}, 14);
  std::vector<Box> boxes;
  for (int i = 0; i < 8; ++i) boxes.push_back(labels.place(400 + i, 150, "a label").box);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_EQ(overlap(boxes[i], boxes[k]), 0) << i << " and " << k;
  }
}

TEST(CompareDocument, NamesTheModelsThatARunDidNotComeTo) {
  Results results = results_of(small_model());
  results.asked = {"gpt"};
  EXPECT_FALSE(contains(to_markdown(results, "p.svg"), "broken off"));
  results.asked = {"gpt", "resnet", "lstm"};
  EXPECT_TRUE(contains(to_markdown(results, "p.svg"), "The run was broken off. Not measured:** resnet, lstm."));
}

TEST(CompareResults, AreTheSameAfterWritingAndReading) {
  ModelResult model = small_model();
  model.rivals = {rival("rival", 450, {1.2})};
  model.rivals[0].measured.gradient_error = 0.5;
  const Results results = results_of(model);
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "reprise_compare.json";
  write_results(path, results);
  const Results again = read_results(path);
  EXPECT_EQ(to_markdown(again, "p.svg"), to_markdown(results, "p.svg"));
  EXPECT_EQ(to_svg(again), to_svg(results));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace reprise::benchmarks
