// What is in a trace.
#include "reprise/report/inspection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/drops.h"
#include "reprise/trace/timeline.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::SmallTrace;

TEST(Inspection, CountsEverything) {
  SmallTrace small;
  const Id weights = small.outside(50, Stretch{0, 2});
  small.run({weights}, {10, 20}, 4);
  small.run({1}, {5}, 2);
  small.event({1, 2}, 3);
  small.trace.moments[2].other = 7;
  const Inspection inspection = inspect(small.trace);
  EXPECT_EQ(inspection.operators, 2u);
  EXPECT_EQ(inspection.moments, 3u);
  EXPECT_EQ(inspection.events, 1u);
  EXPECT_EQ(inspection.values, 4u);
  EXPECT_EQ(inspection.outside, 1u);
  EXPECT_EQ(inspection.value_bytes, 85);
  EXPECT_EQ(inspection.outside_bytes, 50);
  EXPECT_EQ(inspection.largest_other, 7);
  EXPECT_EQ(inspection.cost, 9);
  EXPECT_EQ(inspection.event_cost, 3);
}

// Batch normalization counts its batches, and an optimizer's step may come first in a trace of `reprise run`.
TEST(Inspection, CountsAnOperatorThatOnlyHasEffectsAsAnOperatorAndANodeOfBackwardAsAnEvent) {
  SmallTrace small;
  small.run({}, {}, 1);
  small.trace.operators[0].replayable = false;
  small.run({}, {10}, 2);
  small.event_with_workspace({0}, 20, 4);
  small.event({0}, 8);
  const Inspection inspection = inspect(small.trace);
  EXPECT_EQ(inspection.operators, 2u);
  EXPECT_EQ(inspection.events, 2u);
  EXPECT_EQ(inspection.event_cost, 12);
}

TEST(Inspection, NamesTheMomentAndTheValuesOfThePeak) {
  SmallTrace small;
  small.run({}, {10});
  small.run({0}, {100}, 1, 30);
  small.run({1}, {1});
  small.trace.moments[1].other = 3;
  const Inspection inspection = inspect(small.trace);
  ASSERT_TRUE(inspection.peak);
  EXPECT_EQ(inspection.peak->moment, 1);
  EXPECT_EQ(inspection.peak->bytes, 143);
  EXPECT_EQ(inspection.peak->workspace, 30);
  EXPECT_EQ(inspection.peak->other, 3);
  EXPECT_EQ(inspection.peak->values, (std::vector<Id>{1, 0}));
  EXPECT_EQ(inspection.keep_everything_peak, 143);
}

TEST(Inspection, PutsManyBytesUnusedForLongAndCheapToRecomputeFirst) {
  SmallTrace small;
  small.run({}, {8}, 1);     // value 0: cheap
  small.run({0}, {8}, 100);  // value 1: expensive
  small.run({0}, {80}, 1);   // value 2: cheap and large
  for (int i = 0; i < 5; ++i) small.run({0}, {1}, 10);
  small.run({1, 2}, {1}, 1);
  const Inspection inspection = inspect(small.trace);
  ASSERT_GE(inspection.worth_most.size(), 2u);
  EXPECT_EQ(inspection.worth_most[0].value, 2);
  EXPECT_EQ(inspection.worth_most[0].from, 3);
  EXPECT_EQ(inspection.worth_most[0].until, 7);
  EXPECT_EQ(inspection.worth_most[0].unused, 50);
  // Value 0 is gone by then and has to be replayed too.
  EXPECT_EQ(inspection.worth_most[0].recompute, 2);
  EXPECT_EQ(inspection.worth_most[0].replays, 2u);
  EXPECT_EQ(inspection.worth_most[1].value, 1);
}

TEST(Inspection, DoesNotSuggestWhatTheProgramHoldsOrCannotBeReplayed) {
  SmallTrace small;
  small.run({}, {8});
  small.run({}, {8});
  for (int i = 0; i < 5; ++i) small.run({}, {1});
  small.run({0, 1}, {1});
  small.trace.values[0].held = Stretch{0, 7};
  small.trace.operators[1].replayable = false;
  const Inspection inspection = inspect(small.trace);
  EXPECT_TRUE(inspection.worth_most.empty());
  EXPECT_EQ(inspection.fixed, std::vector<Id>{1});
  EXPECT_EQ(inspection.fixed_bytes, 8);
}

TEST(Inspection, AValueThatCanBePackedIsNotFixed) {
  SmallTrace small;
  small.run({}, {8});
  small.trace.operators[0].replayable = false;
  small.trace.tiers.push_back({"packed", std::nullopt, true, {{0, 1, 0, 0}}});
  EXPECT_TRUE(inspect(small.trace).fixed.empty());
}

// What replaying the value right before `moment` takes, found out from what the interpreter says is resident.
std::set<Id> replays_for(const Trace& trace, const Plan& everything, Id value, Id moment) {
  const auto run = std::find(everything.actions.begin(), everything.actions.end(), Action::run(moment - 1));
  std::vector<Id> there = resident_at(trace, everything, static_cast<std::size_t>(run - everything.actions.begin()));
  const Timeline timeline(trace);
  std::set<Id> moments;
  std::vector<Id> missing = {value};
  while (!missing.empty()) {
    const Id v = missing.back();
    missing.pop_back();
    const Id maker = timeline.made_at(v);
    if (!moments.insert(maker).second) continue;
    for (const Id input : trace.inputs(maker)) {
      const bool stays = std::find(there.begin(), there.end(), input) != there.end() &&
                         (timeline.last_needed(input) >= moment ||
                          (trace.values[input].held && trace.values[input].held->last >= moment - 1));
      if (!stays) missing.push_back(input);
    }
  }
  return moments;
}

TEST(Inspection, TheInterpreterAgreesWithWhatRecomputingCosts) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Trace trace = seed % 3 == 0   ? testing::random_graph(seed, 30)
                        : seed % 3 == 1 ? testing::random_training_step(seed, 12)
                                        : testing::random_trace(seed, {.moments = 30});
    const Plan everything = keep_everything(trace);
    for (const Inspection::Candidate& candidate : inspect(trace).worth_most) {
      const Id needed = candidate.until + 1;
      const std::set<Id> replays = replays_for(trace, everything, candidate.value, needed);
      EXPECT_EQ(replays.size(), candidate.replays) << trace.name << " value " << candidate.value;
      std::vector<Action> actions;
      for (Id m = 0; m < trace.moment_count(); ++m) {
        if (m == needed) {
          for (const Id replay : replays) actions.push_back(Action::replay(replay));
        }
        actions.push_back(Action::run(m));
      }
      const Plan plan = with_drops(trace, Timeline(trace), {}, actions, 0);
      const Simulation simulation = simulate(trace, plan, {.record_live = false, .check_budget = false});
      ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
      EXPECT_DOUBLE_EQ(simulation.replay_cost, candidate.recompute);
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Inspection, SaysWhatSetsTheFloor) {
  SmallTrace small;
  const Id weights = small.outside(50, Stretch{0, 2});
  small.run({weights}, {10});
  small.trace.operators[0].replayable = false;
  small.run({weights}, {4});
  small.run({2}, {20}, 1, 30);
  small.event({1});
  small.trace.moments[2].other = 7;
  const Inspection inspection = inspect(small.trace);
  EXPECT_EQ(inspection.floor.moment, 2);
  EXPECT_EQ(inspection.floor_parts.needed, 4);
  EXPECT_EQ(inspection.floor_parts.made, 20);
  EXPECT_EQ(inspection.floor_parts.workspace, 30);
  EXPECT_EQ(inspection.floor_parts.held, 50);
  EXPECT_EQ(inspection.floor_parts.fixed, 10);
  EXPECT_EQ(inspection.floor_parts.other, 7);
  EXPECT_NE(to_text(small.trace, inspection)
                .find("moment 2 'operator 2', which needs 4 B of values, 20 B of results and 30 B of workspace, beside "
                      "7 B of other bytes, 50 B of values that the program holds and 10 B of values that cannot be "
                      "recomputed\n"),
            std::string::npos)
      << to_text(small.trace, inspection);
}

TEST(Inspection, ThePartsOfTheFloorAreTheFloor) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Trace trace = seed % 2 == 0 ? testing::random_trace(seed, {.moments = static_cast<int>(seed % 20)})
                                      : testing::random_training_step(seed, 10);
    const Inspection inspection = inspect(trace);
    const FloorParts& parts = inspection.floor_parts;
    ASSERT_EQ(parts.needed + parts.made + parts.workspace + parts.held + parts.fixed + parts.other,
              inspection.floor.bytes)
        << "seed " << seed;
  }
}

TEST(Inspection, TheTextSaysWhatItsColumnsMean) {
  const Trace trace = testing::random_training_step(3, 12);
  const std::string text = to_text(trace, inspect(trace));
  for (const char* part : {"operators", "events", "from outside", "peak", "floor", "fixed", "Worth most to evict",
                           "bytes x unused / recompute"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Inspection, CanBeMadeOfWhatever) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Trace trace = testing::random_trace(seed, {.moments = static_cast<int>(seed % 20)});
    const Inspection inspection = inspect(trace);
    EXPECT_LE(inspection.worth_most.size(), 10u);
    EXPECT_EQ(inspection.peak.has_value(), !trace.moments.empty());
    EXPECT_TRUE(to_text(trace, inspection).ends_with("\n"));
  }
}

}  // namespace
}  // namespace reprise
