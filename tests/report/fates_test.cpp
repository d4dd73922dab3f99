// What happens to values, and why.
#include "report/fates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/number_pattern.h"
#include "reprise/plan/planner.h"
#include "support/random_plan.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

constexpr SimulateOptions recorded{.record_live = true, .check_budget = false, .record_residences = true};

Fates fates_with(const Trace& trace, const Plan& plan) {
  const Plan everything = keep_everything(trace);
  return fates_of(trace, everything, simulate(trace, everything, recorded), plan, simulate(trace, plan, recorded));
}

const ValueGroup& group_of(const Fates& fates, Bytes bytes) {
  const auto found = std::find_if(fates.values.begin(), fates.values.end(),
                                  [bytes](const ValueGroup& group) { return group.bytes == bytes; });
  EXPECT_NE(found, fates.values.end()) << bytes;
  return *found;
}

TEST(Fates, SayWhatBecomesOfEachValueAndWhy) {
  testing::SmallTrace small;
  const Id input = small.outside(3);
  small.run({input}, {1024}, 1);  // evicted
  small.run({1}, {2048}, 2);      // packed
  small.run({2}, {4096, 5}, 95);  // kept; the second one is not needed
  small.run({3}, {1 << 20}, 1);   // the peak
  small.event({4}, 1);
  small.event({1, 2, 3});
  small.trace.operators[2].replayable = false;
  small.trace.tiers.push_back({"bits", std::nullopt, true, {{2, 48, 0.25, 0.25}}});
  Plan plan;
  plan.tiers = small.trace.tiers;
  plan.actions = {Action::run(0),    Action::run(1),    Action::drop(1), Action::run(2), Action::drop(4),
                  Action::put(2, 0), Action::drop(2),   Action::run(3),  Action::run(4), Action::drop(5),
                  Action::replay(0), Action::get(2, 0), Action::run(5)};
  small.trace.moments[4].needs = {5};
  const Fates fates = fates_with(small.trace, plan);

  const ValueGroup& evicted = group_of(fates, 1024);
  EXPECT_EQ(evicted.fate, Fate::evicted);
  EXPECT_EQ(what_happens(evicted), "evicted, 1 replay");
  EXPECT_EQ(sentence(small.trace, evicted), "recomputing costs 1 % of the step and frees 1.00 KiB at the peak");
  const ValueGroup& packed = group_of(fates, 2048);
  EXPECT_EQ(what_happens(packed), "packed");
  EXPECT_EQ(sentence(small.trace, packed),
            "packing and unpacking costs 0.5 % of the step and frees 1.95 KiB at the peak");
  EXPECT_EQ(group_of(fates, 4096).reason, Reason::not_replayable);
  EXPECT_EQ(group_of(fates, 5).reason, Reason::unneeded);
  EXPECT_EQ(group_of(fates, 3).reason, Reason::from_outside);
  EXPECT_EQ(group_of(fates, 1 << 20).reason, Reason::in_use);
  EXPECT_EQ(fates.values.front().bytes, 1 << 20);
}

TEST(Fates, NameTheTierThatAValueWentTo) {
  testing::SmallTrace small;
  small.run({}, {100}, 25);
  small.run({}, {100}, 25);
  small.run({}, {1000}, 25);
  small.event({0, 1}, 25);
  small.trace.tiers = {{"disk", std::nullopt, false, {{0, 100, 0.5, 0.5}}},
                       {"host", std::nullopt, false, {{1, 100, 0.25, 0.25}}, true},
                       {"tape", std::nullopt, false, {{0, 100, 1, 1}}}};
  const auto rows_with = [&](Id tier_of_first) {
    const Plan plan{
        largest_bytes,
        small.trace.tiers,
        {Action::run(0), Action::put(0, tier_of_first), Action::drop(0), Action::run(1), Action::put(1, 1),
         Action::drop(1), Action::run(2), Action::get(0, tier_of_first), Action::get(1, 1), Action::run(3)}};
    std::vector<std::string> rows;
    for (const ValueGroup& group : fates_with(small.trace, plan).values) {
      if (group.bytes == 100) rows.push_back(what_happens(group) + ": " + sentence(small.trace, group));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  const std::string on_host = "on the host: copying there and back costs 0.5 % of the step and frees 100 B at the peak";
  EXPECT_EQ(rows_with(0),
            (std::vector<std::string>{"on disk: writing and reading costs 1 % of the step and frees 100 B at the peak",
                                      on_host}));
  EXPECT_EQ(rows_with(2),
            (std::vector<std::string>{
                "in 'tape': copying there and back costs 2 % of the step and frees 100 B at the peak", on_host}));
}

TEST(Fates, PutAlikeValuesIntoOneRow) {
  testing::SmallTrace small;
  Id x = small.outside(1);
  for (int i = 0; i < 5; ++i) {
    small.run({x}, {100});
    x = small.trace.value_count() - 1;
    small.trace.operators.back().name = "layer " + std::to_string(i) + ": norm";
    small.trace.operators.back().module = "layers." + std::to_string(i);
  }
  const Fates fates = fates_with(small.trace, keep_everything(small.trace));
  const ValueGroup& group = group_of(fates, 100);
  EXPECT_EQ(group.values, 4u);  // the last one is not needed
  EXPECT_EQ(group.name, "layer 0…3: norm");
  EXPECT_EQ(group.module, "layers.0…3");
  ASSERT_EQ(fates.by_operator.size(), 1u);
  EXPECT_EQ(fates.by_operator[0].values, 5u);
  EXPECT_EQ(fates.by_operator[0].bytes, 500);
  EXPECT_EQ(fates.by_module[0].name, "layers.0…4");
}

TEST(Fates, AddUpToTheWorkOfThePlan) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    testing::Random random(seed);
    const Trace trace = testing::random_trace(seed);
    const Plan plan = testing::random_valid_plan(random, trace);
    const Simulation after = simulate(trace, plan, recorded);
    const Fates fates = fates_with(trace, plan);
    std::size_t gets = 0, values = 0, with_bytes = 0;
    double recompute_cost = 0;
    for (const ValueGroup& group : fates.values) {
      gets += group.gets;
      values += group.values;
      if (group.fate != Fate::kept) recompute_cost += group.recompute_cost;
      EXPECT_FALSE(sentence(trace, group).empty());
    }
    for (const Value& value : trace.values) with_bytes += value.bytes > 0;
    EXPECT_EQ(values, with_bytes);
    EXPECT_LE(gets, after.gets);
    EXPECT_LE(recompute_cost, after.replay_cost + after.tier_cost + 1e-9);
    double replay_cost = 0;
    for (const NameGroup& group : fates.by_operator) replay_cost += group.replay_cost;
    EXPECT_LE(replay_cost, after.replay_cost + 1e-9);
  }
}

TEST(NumberPattern, ShowsTheRangeOfNumbersThatDiffer) {
  NumberPattern pattern;
  for (const char* name : {"h.3.mlp 7", "h.11.mlp 7", "h.0.mlp 7"}) pattern.add(name);
  EXPECT_EQ(pattern.text(), "h.0…11.mlp 7");
  EXPECT_EQ(without_numbers("h.3.mlp"), without_numbers("h.12.mlp"));
  EXPECT_NE(without_numbers("h.3.mlp"), without_numbers("h.x.mlp"));
  NumberPattern none;
  EXPECT_EQ(none.text(), "");
  none.add("");
  EXPECT_EQ(none.text(), "");
  NumberPattern huge;
  huge.add("hash 123456789012345678901234567890");
  EXPECT_EQ(huge.text(), "hash 123456789012345678901234567890");
}

}  // namespace
}  // namespace reprise
