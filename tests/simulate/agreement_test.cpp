// The interpreter and the naive one agree on random actions over random traces: valid plans, and plans that break any
// rule.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "simulate/naive_interpreter.h"
#include "support/random_plan.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

using testing::naive_simulate;
using testing::Random;
using testing::RandomTraceOptions;

std::string read_aloud(const Trace& trace, const Plan& plan) {
  std::string text = trace.name + ", budget " + std::to_string(plan.budget) + ":";
  for (const Action& action : plan.actions) {
    text += std::string(" ") + name(action.kind) + " " + std::to_string(action.target);
    if (action.kind >= Action::Kind::put) text += "/" + std::to_string(action.tier);
  }
  return text;
}

Plan some_plan(Random& random, const Trace& trace, double nonsense) {
  return testing::random_plan(random, trace, nonsense, [&](const Plan& plan) {
    const Simulation result = naive_simulate(trace, plan, false);
    return !result.broken || result.broken->rule == Rule::complete;
  });
}

void expect_agreement(const Trace& trace, const Plan& plan, bool check_budget) {
  const Simulation expected = naive_simulate(trace, plan, check_budget);
  const Simulation actual = simulate(trace, plan, {.check_budget = check_budget});
  ASSERT_EQ(actual.broken.has_value(), expected.broken.has_value())
      << (actual.broken ? actual.broken->sentence : "valid");
  if (expected.broken) {
    EXPECT_STREQ(name(actual.broken->rule), name(expected.broken->rule));
    EXPECT_EQ(actual.broken->action, expected.broken->action);
    EXPECT_EQ(actual.broken->value, expected.broken->value);
  } else {
    EXPECT_EQ(actual.tier_peaks, expected.tier_peaks);
  }
  EXPECT_EQ(actual.live, expected.live);
  EXPECT_EQ(actual.peak, expected.peak);
  EXPECT_EQ(actual.peak_action, expected.peak_action);
  EXPECT_EQ(actual.cost, expected.cost);
  if (check_budget && actual.valid()) {
    EXPECT_LE(actual.peak, plan.budget);
  }
}

TEST(SimulateAgreement, WithTheNaiveInterpreterOnRandomPlans) {
  const std::uint64_t cases = std::getenv("REPRISE_LONG") ? 100000 : 1000;
  std::map<Rule, int> broken;
  int valid = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    Random random(seed);
    RandomTraceOptions options;
    options.moments = static_cast<int>(random.between(1, 9));
    options.held = 0.4;
    options.limited_capacity = 0.8;
    options.packed_tier = options.disk_tier = 0.7;
    options.overlap = 0.5;
    const Trace trace = testing::random_trace(seed, options);
    Plan plan = some_plan(random, trace, seed % 4 == 0 ? 0 : 0.05);
    SCOPED_TRACE(read_aloud(trace, plan));
    expect_agreement(trace, plan, false);
    const Simulation free = simulate(trace, plan, {.check_budget = false});
    for (const Bytes budget : {free.peak, free.peak - 1, random.between(0, static_cast<Id>(free.peak)) + Bytes{0}}) {
      plan.budget = std::max<Bytes>(0, budget);
      expect_agreement(trace, plan, true);
      const Simulation result = simulate(trace, plan);
      result.broken ? ++broken[result.broken->rule] : ++valid;
    }
    if (HasFailure()) break;
  }
  // All of it was exercised, not only said to be.
  EXPECT_GT(valid, static_cast<int>(cases / 10));
  for (int rule = 0; rule <= static_cast<int>(Rule::complete); ++rule) {
    EXPECT_GT(broken[static_cast<Rule>(rule)], 0) << name(static_cast<Rule>(rule));
  }
}

}  // namespace
}  // namespace reprise
