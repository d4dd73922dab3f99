// Every rule of `check` is broken once, and the error has to say where.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "reprise/trace/error.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise::check_test {
namespace {

using testing::SmallTrace;

// Moments: 0 makes 1 and 2 from 0 (outside), 1 makes 3 from 1 in place, 2 is an event that needs 2, 3 makes 5 from 3
// and 4 (outside, arrives at 2).
Trace example() {
  SmallTrace small;
  small.outside(10);
  small.run({0}, {20, 30});
  small.run({1}, {20});
  small.event({2}, 5);
  small.outside(40, Stretch{2, 3});
  small.run({3, 4}, {50});
  small.trace.values[3].takes_over = 1;
  small.trace.values[1].held = Stretch{0, 1};
  small.trace.values[5].held = Stretch{3, 3};
  Tier tier;
  tier.name = "packed";
  tier.capacity = 100;
  tier.entries = {{1, 10, 1, 1}, {2, 15, 1, 1}};
  small.trace.tiers.push_back(tier);
  return small.trace;
}

// Breaks the example and expects the error at this place, with these words in its reason.
void expect_error(const char* place, const char* words, const std::function<void(Trace&)>& break_it) {
  Trace trace = example();
  break_it(trace);
  try {
    check(trace);
    ADD_FAILURE() << "no error at " << place;
  } catch (const BadInput& error) {
    EXPECT_EQ(error.file(), "");
    EXPECT_EQ(error.place(), place);
    EXPECT_NE(error.reason().find(words), std::string::npos) << error.what();
    EXPECT_EQ(error.what(), error.place() + ": " + error.reason());
  }
}

TEST(Check, AcceptsTheExampleAndAnEmptyTrace) {
  EXPECT_NO_THROW(check(example()));
  EXPECT_NO_THROW(check(Trace{}));
}

TEST(Check, AcceptsAllRandomTraces) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    testing::RandomTraceOptions options;
    options.moments = static_cast<int>(seed % 30);
    options.odd_costs = seed % 2 == 0 ? 0.5 : 0;
    ASSERT_NO_THROW(check(testing::random_trace(seed, options))) << seed;
    ASSERT_NO_THROW(check(testing::random_graph(seed, options.moments))) << seed;
    ASSERT_NO_THROW(check(testing::random_training_step(seed, options.moments))) << seed;
  }
}

TEST(Check, WantsIdsThatExist) {
  expect_error("operators[0].inputs[0]", "6 is not in values, which has 6",
               [](Trace& t) { t.operators[0].inputs = {6}; });
  expect_error("operators[0].inputs[0]", "-1", [](Trace& t) { t.operators[0].inputs = {-1}; });
  expect_error("operators[0].outputs[2]", "99", [](Trace& t) { t.operators[0].outputs.push_back(99); });
  expect_error("moments[2].needs[1]", "7", [](Trace& t) { t.moments[2].needs.push_back(7); });
  expect_error("moments[3].runs", "3 is not in operators", [](Trace& t) { t.moments[3].runs = 3; });
  expect_error("values[0].maker", "3 is not in operators", [](Trace& t) { t.values[0].maker = 3; });
  expect_error("values[3].takes_over", "77", [](Trace& t) { t.values[3].takes_over = 77; });
  expect_error("tiers[0].entries[1]", "6", [](Trace& t) { t.tiers[0].entries[1].value = 6; });
}

TEST(Check, WantsNoValueTwiceInAList) {
  expect_error("operators[2].inputs[2]", "value 3 is named twice", [](Trace& t) { t.operators[2].inputs = {3, 4, 3}; });
  expect_error("operators[0].outputs[1]", "named twice", [](Trace& t) { t.operators[0].outputs = {1, 1}; });
  expect_error("moments[2].needs[1]", "named twice", [](Trace& t) { t.moments[2].needs = {2, 2}; });
}

TEST(Check, WantsMakersAndOutputsToAgree) {
  expect_error("operators[0].outputs[0]", "operator 2 makes it", [](Trace& t) { t.values[1].maker = 2; });
  expect_error("operators[0].outputs[1]", "comes from outside", [](Trace& t) { t.values[2].maker.reset(); });
  expect_error("operators[1].outputs[1]", "operator 0 makes it", [](Trace& t) { t.operators[1].outputs = {3, 2}; });
  expect_error("values[2].maker", "not an output of operator 0", [](Trace& t) { t.operators[0].outputs = {1}; });
}

TEST(Check, WantsEveryOperatorRunOnce) {
  expect_error("operators[2]", "no moment runs it", [](Trace& t) { t.moments.pop_back(); });
  expect_error("moments[3].runs", "moment 0 already runs operator 0", [](Trace& t) { t.moments[3].runs = 0; });
}

TEST(Check, WantsAnOperatorThatIsAnEventToMakeNothingAndToRunOnce) {
  SmallTrace small;
  small.run({}, {10});
  small.event_with_workspace({0}, 20);
  EXPECT_NO_THROW(check(small.trace));
  small.trace.operators[1].replayable = true;
  EXPECT_THROW(check(small.trace), BadInput);
  small.trace.operators[1].replayable = small.trace.operators[0].replayable = false;
  small.trace.operators[0].event = true;
  EXPECT_THROW(check(small.trace), BadInput);
}

TEST(Check, WantsWhatAnEventSaysOnlyOfEvents) {
  expect_error("moments[0].name", "only an event", [](Trace& t) { t.moments[0].name = "zero"; });
  expect_error("moments[1].needs", "only an event", [](Trace& t) { t.moments[1].needs = {0}; });
  expect_error("moments[3].cost", "only an event", [](Trace& t) { t.moments[3].cost = 1; });
}

TEST(Check, FindsCyclesAndWrongOrders) {
  expect_error("operators[0].inputs[1]", "moment 0 needs value 5, which is made at moment 3: a cycle or a wrong order",
               [](Trace& t) { t.operators[0].inputs.push_back(5); });
  expect_error("moments[2].needs[1]", "moment 2 needs value 5, which is made at moment 3: a cycle or a wrong order",
               [](Trace& t) { t.moments[2].needs.push_back(5); });
  expect_error("operators[2].inputs[2]", "its own output", [](Trace& t) { t.operators[2].inputs.push_back(5); });
}

TEST(Check, WantsValuesFromOutsideToHaveArrived) {
  expect_error("operators[1].inputs[1]", "moment 1 needs value 4, which arrives from outside at moment 2",
               [](Trace& t) { t.operators[1].inputs.push_back(4); });
  Trace in_time = example();
  in_time.moments[2].needs.push_back(4);
  EXPECT_NO_THROW(check(in_time));
}

TEST(Check, WantsNothingBelowZero) {
  expect_error("values[2].bytes", "-1", [](Trace& t) { t.values[2].bytes = -1; });
  expect_error("operators[1].workspace", "-1", [](Trace& t) { t.operators[1].workspace = -1; });
  expect_error("moments[3].other", "-1", [](Trace& t) { t.moments[3].other = -1; });
  expect_error("tiers[0].capacity", "-1", [](Trace& t) { t.tiers[0].capacity = -1; });
  expect_error("tiers[0].entries[0]", "-1", [](Trace& t) { t.tiers[0].entries[0].bytes = -1; });
  expect_error("operators[2].cost", "-0.5", [](Trace& t) { t.operators[2].cost = -0.5; });
  expect_error("moments[2].cost", "-3", [](Trace& t) { t.moments[2].cost = -3; });
  expect_error("tiers[0].entries[1]", "-1", [](Trace& t) { t.tiers[0].entries[1].get_cost = -1; });
  expect_error("tiers[0].entries[1]", "-1", [](Trace& t) { t.tiers[0].entries[1].get_time = -1; });
}

TEST(Check, WantsTiersInTheBudgetToDoNothingBesideTheComputation) {
  Trace outside = example();
  outside.tiers[0].in_budget = false;
  outside.tiers[0].entries[0].put_time = 1;
  EXPECT_NO_THROW(check(outside));
  expect_error("tiers[0].entries[0]", "beside the computation", [](Trace& t) {
    t.tiers[0].in_budget = true;
    t.tiers[0].entries[0].put_time = 1;
  });
}

TEST(Check, WantsCostsToBeNumbers) {
  expect_error("operators[0].cost", "has to be a number", [](Trace& t) { t.operators[0].cost = std::nan(""); });
  expect_error("moments[2].cost", "has to be a number", [](Trace& t) { t.moments[2].cost = HUGE_VAL; });
  expect_error("tiers[0].entries[0]", "a number", [](Trace& t) { t.tiers[0].entries[0].put_cost = std::nan(""); });
}

TEST(Check, NamesTheOneThatIsAbsurdlyLarge) {
  const Bytes most = std::numeric_limits<Bytes>::max();
  expect_error("values[2].bytes", "together have to stay below", [&](Trace& t) { t.values[2].bytes = most; });
  expect_error("operators[1].workspace", "together have to stay below",
               [&](Trace& t) { t.operators[1].workspace = largest_bytes; });
  expect_error("moments[0].other", "together have to stay below", [&](Trace& t) { t.moments[0].other = most; });
  expect_error("tiers[0].entries[1]", "together have to stay below",
               [&](Trace& t) { t.tiers[0].entries[1].bytes = most; });
  expect_error("operators[2].cost", "together have to stay below", [](Trace& t) { t.operators[2].cost = 1e18; });
  expect_error("tiers[0].entries[1]", "together have to stay below",
               [](Trace& t) { t.tiers[0].entries[1].put_cost = 1e300; });
  // Together too much: the largest is the one to look at, wherever it stands.
  expect_error("values[1].bytes", "together have to stay below", [](Trace& t) {
    t.values[1].bytes = t.values[3].bytes = largest_bytes / 2 - 100;
    t.values[2].bytes = 200;
  });
  expect_error("operators[1].cost", "together have to stay below", [](Trace& t) {
    t.operators[0].cost = 4e17;
    t.operators[1].cost = 5e17;
    t.operators[2].cost = 2e17;
  });
}

TEST(Check, AcceptsSumsJustBelowTheLimit) {
  Trace trace = example();
  trace.moments[3].other = largest_bytes - 1 - (10 + 20 + 30 + 20 + 40 + 50 + 10 + 15);
  EXPECT_NO_THROW(check(trace));
  trace.moments[3].other += 1;
  EXPECT_THROW(check(trace), BadInput);
}

TEST(Check, WantsHeldStretchesInsideTheTimeline) {
  expect_error("values[5].held", "the trace has 4 moments", [](Trace& t) { t.values[5].held = Stretch{3, 4}; });
  expect_error("values[2].held", "the trace has 4 moments", [](Trace& t) { t.values[2].held = Stretch{-1, 2}; });
  expect_error("values[2].held", "ends before it starts", [](Trace& t) { t.values[2].held = Stretch{2, 1}; });
  expect_error("values[5].held", "made at moment 3 only", [](Trace& t) { t.values[5].held = Stretch{2, 3}; });
}

TEST(Check, WantsStorageTakenOverToBeFree) {
  expect_error("values[0].takes_over", "from outside", [](Trace& t) { t.values[0].takes_over = 1; });
  expect_error("values[3].takes_over", "value 2 is not an input of operator 1",
               [](Trace& t) { t.values[3].takes_over = 2; });
  expect_error("values[3].takes_over", "value 1 has 19 bytes, this one 20", [](Trace& t) { t.values[1].bytes = 19; });
  expect_error("values[3].takes_over", "moment 2 needs it", [](Trace& t) { t.moments[2].needs.push_back(1); });
  expect_error("values[3].takes_over", "held until 2", [](Trace& t) { t.values[1].held = Stretch{0, 2}; });
  expect_error("values[6].takes_over", "value 3 already takes over value 1", [](Trace& t) {
    Value second = t.values[3];
    t.values.push_back(second);
    t.operators[1].outputs.push_back(6);
  });
}

TEST(Check, WantsTierEntriesToAscend) {
  expect_error("tiers[0].entries[1]", "ascend",
               [](Trace& t) { std::swap(t.tiers[0].entries[0], t.tiers[0].entries[1]); });
  expect_error("tiers[0].entries[1]", "ascend", [](Trace& t) { t.tiers[0].entries[1].value = 1; });
}

}  // namespace
}  // namespace reprise::check_test
