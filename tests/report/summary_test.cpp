// What a session did, for people and for programs.
#include "reprise/report/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace reprise::summary_test {
namespace {

constexpr Bytes MiB = Bytes{1} << 20;

std::string text_of(const Summary& summary) {
  std::ostringstream out;
  out << summary;
  return out.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Summary usual() {
  Summary summary;
  summary.name = "gpt";
  summary.steps = 120;
  summary.devices.front().budget = 512 * MiB;
  summary.devices.front().live = 96 * MiB;
  summary.devices.front().peak_last_step = 500 * MiB;
  summary.devices.front().peak = 511 * MiB;
  summary.peak_if_kept = 1000 * MiB;
  summary.devices.front().evicted_last_step = 600 * MiB;
  summary.packed_last_step = 64 * MiB;
  summary.packed_to_last_step = 2 * MiB;
  summary.resident = 600 * MiB;
  summary.replays = 311;
  summary.replay_seconds = 0.05;
  summary.pack_seconds = 0.01;
  summary.step_seconds = 1.06;
  summary.traces = 1;
  summary.plans = 1;
  summary.followed_plan = true;
  summary.promised_peak = 499 * MiB;
  summary.promised_overhead = 0.058;
  summary.gap = 0.021;
  summary.verified = 1204;
  return summary;
}

TEST(Summary, OverheadIsReplayingAndPackingOverTheRest) {
  EXPECT_NEAR(usual().overhead(), 0.06, 1e-12);
}

TEST(Summary, OverheadIsZeroIfNothingWasMeasured) {
  EXPECT_EQ(Summary{}.overhead(), 0);
  Summary odd;
  odd.replay_seconds = 1;
  odd.step_seconds = 1;
  EXPECT_EQ(odd.overhead(), 0) << "clocks that do not agree make no infinity";
}

TEST(SummaryText, TellsWhatAStepNeededAndWhatItCost) {
  EXPECT_EQ(text_of(usual()),
            "gpt: 120 steps, a budget of 512.00 MiB\n"
            "  peak        500.00 MiB in the last step, 511.00 MiB in any\n"
            "              1000.00 MiB if nothing were evicted: 0.50 of that\n"
            "  evicted     600.00 MiB\n"
            "  packed      64.00 MiB into 2.00 MiB\n"
            "  replays     311 operators, in 50 ms\n"
            "  overhead    6.0 %: 60 ms of replaying and packing beside 1.0 s\n"
            "  plan        followed from the first operator to the last\n"
            "              it promises a peak of 499.00 MiB and an overhead of 5.8 %\n"
            "              it costs at most 2.1 % more than the best possible plan\n"
            "  verified    1204 values, bit for bit\n"
            "  now         96.00 MiB live, 600.00 MiB resident in the process\n");
}

TEST(SummaryText, OfASessionWithoutStepsIsShort) {
  Summary summary;
  summary.name = "session";
  EXPECT_EQ(text_of(summary), "session: no step has ended, no budget\n");
}

TEST(SummaryText, SaysNothingAboutWhatDidNotHappen) {
  Summary summary;
  summary.name = "session";
  summary.steps = 1;
  summary.devices.front().peak = summary.devices.front().peak_last_step = 5 * MiB;
  summary.step_seconds = 0.5;
  EXPECT_EQ(text_of(summary),
            "session: 1 step, no budget\n"
            "  peak        5.00 MiB in the last step\n"
            "  evicted     nothing in the last step\n"
            "  overhead    0 %\n"
            "  plan        none\n");
}

TEST(SummaryText, TellsHowThePlanStands) {
  Summary summary = usual();
  summary.followed_plan = false;
  EXPECT_TRUE(has(text_of(summary), "  plan        there is one, the last step did not follow it to the end\n"));
  summary.planning = true;
  EXPECT_TRUE(has(text_of(summary), "did not follow it to the end; a new one is being made\n"));
  summary.promised_peak.reset();
  summary.promised_overhead.reset();
  summary.gap.reset();
  EXPECT_TRUE(has(text_of(summary), "  plan        none yet, it is being made\n  verified")) << text_of(summary);
  summary.planning = false;
  summary.smallest_feasible = 600 * MiB;
  EXPECT_TRUE(has(text_of(summary),
                  "  plan        none\n"
                  "              the smallest budget with a proven plan is 600.00 MiB (629145600 bytes)\n"));
}

TEST(SummaryText, SaysWhatCameBesideThePlanAndThatOtherBytesHaveOutgrownIt) {
  Summary summary = usual();
  summary.replays_beside_plan = 300;
  summary.promised_peak = 530 * MiB;
  EXPECT_TRUE(has(text_of(summary),
                  "  plan        followed from the first operator to the last; 300 of the replays came beside it\n"
                  "              it promises an overhead of 5.8 %\n"
                  "              other bytes have outgrown it: alone it would have a peak of 530.00 MiB\n"))
      << text_of(summary);
  EXPECT_EQ(nlohmann::json::parse(json_line(summary))["replays_beside_plan"], 300);
}

TEST(SummaryText, TellsWhatTheDiskDid) {
  Summary summary = usual();
  summary.disk_put_last_step = 48 * MiB;
  summary.disk_got_last_step = 32 * MiB;
  summary.disk_seconds = 0.08;
  summary.disk_wait_seconds = 0.02;
  const std::string text = text_of(summary);
  EXPECT_TRUE(has(text, "  disk        48.00 MiB written, 32.00 MiB read, in 80 ms; the step waited for 20 ms\n"))
      << text;
  EXPECT_TRUE(has(text, "80 ms of replaying, packing and waiting for the disk beside 980 ms\n")) << text;
  summary.disk_failures = 2;
  summary.last_disk_failure = "cannot write /x/3.value: No space left on device";
  EXPECT_TRUE(has(text_of(summary), "              2 failures so far, the newest: cannot write /x/3.value: No space"));
}

TEST(SummaryText, TellsWhatWentToTheHost) {
  Summary summary = usual();
  summary.host_put_last_step = 48 * MiB;
  summary.host_got_last_step = 32 * MiB;
  summary.host_peak = 40 * MiB;
  EXPECT_TRUE(
      has(text_of(summary), "  host        48.00 MiB copied to its memory, 32.00 MiB back; at most 40.00 MiB there\n"))
      << text_of(summary);
}

TEST(SummaryText, TellsWhatPlanningCostAndSaved) {
  Summary summary = usual();
  EXPECT_FALSE(has(text_of(summary), "planning"));
  summary.planning_seconds = 0.8;
  summary.planning_saved_seconds = -0.1;
  EXPECT_TRUE(has(text_of(summary), "  planning    took 800 ms of CPU time so far\n"));
  summary.planning_saved_seconds = 12.5;
  EXPECT_TRUE(has(text_of(summary), "  planning    took 800 ms of CPU time so far, and saved about 13 s\n"))
      << text_of(summary);
}

TEST(SummaryText, CallsAPlanWithoutGapOptimal) {
  Summary summary = usual();
  summary.gap = 0;
  EXPECT_TRUE(has(text_of(summary), "              optimal: no plan for its budget costs less\n"));
}

TEST(SummaryText, CountsTracesOnlyIfTheyDiffer) {
  Summary summary = usual();
  EXPECT_FALSE(has(text_of(summary), "traces"));
  summary.traces = 3;
  EXPECT_TRUE(has(text_of(summary), "  traces      3, 1 of them with a plan for this budget\n"));
}

TEST(SummaryText, NamesTheNewestDivergencesFirst) {
  Summary summary = usual();
  summary.divergences = 14;
  for (int i = 5; i < 15; ++i) summary.last_divergences.push_back({i, "expected a, but b came"});
  const std::string text = text_of(summary);
  EXPECT_TRUE(has(text,
                  "  divergences 14, the newest:\n"
                  "              step 14: expected a, but b came\n"
                  "              step 13: expected a, but b came\n"
                  "              step 12: expected a, but b came\n"
                  "  verified"))
      << text;
}

TEST(SummaryText, TellsWhatFailedApartFromDivergences) {
  Summary summary = usual();
  summary.notes = 2;
  summary.last_notes = {{3, "a copy is lost"}, {4, "the policy failed"}};
  EXPECT_TRUE(has(text_of(summary),
                  "  notes       2, the newest:\n"
                  "              step 4: the policy failed\n"
                  "              step 3: a copy is lost\n"
                  "  verified"))
      << text_of(summary);
  EXPECT_FALSE(has(text_of(summary), "divergences"));
  const auto json = nlohmann::json::parse(json_line(summary));
  EXPECT_EQ(json["notes"], 2);
  EXPECT_EQ(json["last_notes"][1]["what"], "the policy failed");
}

TEST(SummaryText, NamesWhatIsKeptAndWhy) {
  Summary summary = usual();
  summary.kept = {{"aten::nonzero", "its size depends on its contents", 1, 3 * MiB},
                  {"my::op", "it has no recipe", 2, MiB}};
  EXPECT_TRUE(has(text_of(summary),
                  "  kept        3.00 MiB in 1 value of 'aten::nonzero': its size depends on its contents\n"
                  "              1.00 MiB in 2 values of 'my::op': it has no recipe\n"));
  for (int i = 0; i < 5; ++i) summary.kept.push_back({"small", "why", 1, 1024});
  EXPECT_TRUE(has(text_of(summary), "              and 2 more with 2.00 KiB\n")) << text_of(summary);
}

TEST(SummaryText, NamesWhatTheBudgetDoesNotCount) {
  Summary summary = usual();
  summary.before_meter = 100;
  EXPECT_TRUE(has(text_of(summary), "  elsewhere   100 B allocated before the meter was there: not in the budget\n"));
  summary.other_devices = 2 * MiB;
  EXPECT_TRUE(has(text_of(summary),
                  "  elsewhere   2.00 MiB on other devices: kept, and not in the budget\n"
                  "              100 B allocated before the meter was there: not in the budget\n"));
}

TEST(SummaryText, NamesTheDeviceUnlessItIsTheCpu) {
  Summary summary = usual();
  EXPECT_FALSE(has(text_of(summary), " on cpu"));
  summary.devices.front().device = "cuda:0";
  EXPECT_TRUE(has(text_of(summary), " on cuda:0\n")) << text_of(summary);
  summary.devices.front().budget.reset();
  EXPECT_TRUE(has(text_of(summary), "no budget on cuda:0\n")) << text_of(summary);
}

TEST(SummaryText, NamesTheBytesOfEachPlaceIfThereAreSeveral) {
  Summary summary = usual();
  summary.devices = {{"cpu", 512 * MiB, 1, 500 * MiB, 511 * MiB, 3 * MiB}};
  EXPECT_FALSE(has(text_of(summary), "devices")) << text_of(summary);
  summary.devices.push_back({"cuda:0", std::nullopt, 1, 2 * MiB, 4 * MiB, 0});
  EXPECT_TRUE(has(text_of(summary), " on cpu\n")) << text_of(summary);
  EXPECT_TRUE(has(text_of(summary),
                  "  devices     cpu: a peak of 500.00 MiB of a budget of 512.00 MiB, 3.00 MiB evicted\n"
                  "              cuda:0: a peak of 2.00 MiB without a budget, 0 B evicted\n"))
      << text_of(summary);
  const auto json = nlohmann::json::parse(json_line(summary));
  EXPECT_EQ(json["devices"][0]["budget_bytes"], 512 * MiB);
  EXPECT_EQ(json["devices"][1]["device"], "cuda:0");
  EXPECT_EQ(json["devices"][1]["peak_bytes"], 4 * MiB);
  EXPECT_TRUE(json["devices"][1]["budget_bytes"].is_null());
  EXPECT_EQ(json["device"], "cpu") << "the numbers of the first device have keys of their own";
  EXPECT_EQ(json["peak_bytes"], 511 * MiB);
  EXPECT_EQ(summary.peak(), 511 * MiB);
  EXPECT_EQ(summary.evicted_last_step(), 3 * MiB);
}

TEST(SummaryText, HasNoSpacesAtTheEndsOfLines) {
  Summary summary = usual();
  summary.divergences = 1;
  summary.kept = {{"op", "why", 1, 1}};
  const std::string text = text_of(summary);
  EXPECT_FALSE(has(text, " \n"));
  EXPECT_TRUE(text.ends_with("process\n"));
  EXPECT_FALSE(has(text, "\n\n"));
}

TEST(SummaryJson, HasEveryNumberAndNullForNone) {
  Summary summary = usual();
  summary.divergences = 1;
  summary.last_divergences = {{7, "another shape"}};
  summary.kept = {{"aten::nonzero", "why", 1, 3}};
  nlohmann::json json = nlohmann::json::parse(json_line(summary));
  EXPECT_EQ(json["name"], "gpt");
  EXPECT_EQ(json["budget_bytes"], 512 * MiB);
  EXPECT_EQ(json["peak_bytes"], 511 * MiB);
  EXPECT_EQ(json["promised_peak_bytes"], 499 * MiB);
  EXPECT_NEAR(json["overhead"].get<double>(), 0.06, 1e-12);
  EXPECT_EQ(json["followed_plan"], true);
  EXPECT_EQ(json["last_divergences"][0]["step"], 7);
  EXPECT_EQ(json["kept"][0]["op"], "aten::nonzero");
  EXPECT_TRUE(json["smallest_feasible_bytes"].is_null());
  EXPECT_EQ(json_line(summary).find('\n'), std::string::npos);

  json = nlohmann::json::parse(json_line(Summary{}));
  for (const char* key : {"budget_bytes", "peak_if_kept_bytes", "promised_peak_bytes", "promised_overhead", "gap"}) {
    EXPECT_TRUE(json.contains(key) && json[key].is_null()) << key;
  }
}

TEST(SummaryJson, IsJsonWhateverTheNamesAre) {
  Summary summary = usual();
  summary.name = "line\nbreak \"quoted\" \xff";
  EXPECT_TRUE(nlohmann::json::parse(json_line(summary)).is_object());
  EXPECT_TRUE(text_of(summary).starts_with("line?break"));
}

}  // namespace
}  // namespace reprise::summary_test
