// Every planner on every kind of trace: a plan that the interpreter accepts within the budget, or an honest refusal.
#include "reprise/plan/planner.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "support/cases.h"
#include "support/exhaustive.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::Random;
using testing::random_case;
using testing::read_aloud;
using testing::small_case;
using testing::SmallTrace;

void expect_proven(const Trace& trace, const PlanOptions& options, const PlanResult& result) {
  ASSERT_EQ(result.budget, options.budget);
  ASSERT_EQ(result.plan.budget, options.budget);
  const Simulation proof = simulate(trace, result.plan);
  ASSERT_TRUE(proof.valid()) << proof.broken->sentence << "\n" << read_aloud(result.plan);
  ASSERT_LE(proof.peak, options.budget);
  ASSERT_EQ(proof.peak, result.simulation.peak);
  ASSERT_DOUBLE_EQ(proof.cost, result.simulation.cost);
  ASSERT_LE(result.lower_bound, proof.cost * (1 + 1e-9) + 1e-12);
  ASSERT_GE(result.gap(), 0);
  ASSERT_GE(result.cost_ratio(), 1 - 1e-9);
}

void expect_explained(const Trace& trace, const PlanResult& result) {
  ASSERT_TRUE(result.plan.actions.empty());
  ASSERT_TRUE(result.smallest_feasible);
  ASSERT_TRUE(result.blocker);
  ASSERT_LE(*result.smallest_feasible, std::max(result.keep_everything_peak, *result.smallest_feasible));
  ASSERT_GE(*result.smallest_feasible, result.floor);
  ASSERT_GE(result.blocker->moment, 0);
  ASSERT_LT(result.blocker->moment, trace.moment_count());
  if (result.planner == "best") ASSERT_GT(*result.smallest_feasible, result.budget);
}

// The planner of this name, with this for its own option if it has one.
PlannerChoice with_option(const std::string& name, int option) {
  if (name == "segments") return SegmentsPlanner{.count = option};
  if (name == "every") return EveryPlanner{option};
  if (name == "revolve") return RevolvePlanner{option};
  if (name == "h-revolve") return HRevolvePlanner{option};
  return name;
}

TEST(EveryPlanner, ReturnsAProvenPlanOrRefuses) {
  std::map<std::string, std::map<std::string, int>> seen;
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(25); ++seed) {
      Random random(seed);
      Trace trace = random_case(kind, seed, random.between(3, 30));
      if (seed % 4 == 0) {  // puts that cost nothing are never too many for a search
        for (Tier& tier : trace.tiers) {
          for (TierEntry& entry : tier.entries) entry.put_cost = 0;
        }
      }
      if (seed % 7 == 0) {
        for (Operator& op : trace.operators) op.cost = 0;
      }
      const Bytes low = floor_of(trace).bytes, high = keep_everything(trace).budget;
      for (const PlannerInfo& planner : planners()) {
        PlanOptions options;
        const std::string name_of_planner(planner.name);
        options.planner = random.chance(0.5) ? with_option(name_of_planner, random.between(1, 5)) : name_of_planner;
        options.budget = low + (high - low) * random.between(-5, 105) / 100;
        options.moves = random.below(2'000);
        options.bounds = random.chance(0.3);
        options.seed = seed;
        SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed) + ", planner " + name_of_planner +
                     ", budget " + std::to_string(options.budget) + ", moves " + std::to_string(*options.moves));
        try {
          const PlanResult result = make_plan(trace, options);
          ++seen[name_of_planner][name(result.status)];
          ASSERT_EQ(result.keep_everything_peak, high);
          ASSERT_EQ(result.floor, low);
          result.has_plan() ? expect_proven(trace, options, result) : expect_explained(trace, result);
        } catch (const BadOption& error) {
          ++seen[name_of_planner]["bad option"];
          ASSERT_STRNE(error.what(), "");
        } catch (const std::exception& error) {
          FAIL() << error.what() << "\n" << to_json(trace);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
  for (const auto& [planner, outcomes] : seen) {
    std::cout << "[          ] " << planner << ":";
    for (const auto& [outcome, count] : outcomes) std::cout << " " << outcome << " " << count;
    std::cout << "\n";
    EXPECT_GT(outcomes.count("optimal") + outcomes.count("feasible"), 0U) << planner << " never finds a plan";
  }
}

// Best is never worse than any of the others at the same budget, and has a plan wherever one of them has.
TEST(Best, IsAtLeastAsGoodAsEveryOtherPlanner) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(4); ++seed) {
      const Trace trace = random_case(kind, 40 + seed, 20);
      PlanOptions options;
      options.budget = (floor_of(trace).bytes + keep_everything(trace).budget) / 2;
      options.moves = 10'000;
      options.bounds = false;
      const PlanResult best = make_plan(trace, options);
      for (const PlannerInfo& planner : planners()) {
        SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(40 + seed) + ", planner " +
                     std::string(planner.name));
        options.planner = with_option(std::string(planner.name), 3);
        try {
          const PlanResult other = make_plan(trace, options);
          if (!other.has_plan()) continue;
          ASSERT_TRUE(best.has_plan());
          ASSERT_LE(best.simulation.cost, other.simulation.cost * (1 + 1e-9));
        } catch (const BadOption&) {
          // not made for this trace
        }
      }
    }
  }
}

TEST(EveryPlanner, IsFoundByItsNameInAnyDress) {
  const Trace trace = small_case(CaseKind::graph, 3);
  PlanOptions options;
  options.budget = keep_everything(trace).budget;
  for (const char* dress : {"h_DTR", "dtr", "H-DTR", "h-dtr", "LRU", "Keep_Everything"}) {
    options.planner = dress;
    EXPECT_TRUE(make_plan(trace, options).has_plan()) << dress;
  }
  options.planner = "bset";
  try {
    (void)make_plan(trace, options);
    FAIL() << "there is no such planner";
  } catch (const BadOption& error) {
    EXPECT_NE(std::string(error.what()).find("bset"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("best"), std::string::npos) << error.what();
  }
}

// Between two moments only what one of them needs can be in the way: the blocker says which.
TEST(Infeasible, NamesTheMomentAndTheValues) {
  SmallTrace small;
  small.run({}, {3});
  small.run({0}, {9});
  small.run({1}, {1});
  PlanOptions options;
  options.budget = 11;
  options.moves = 100;
  const PlanResult result = make_plan(small.trace, options);
  ASSERT_FALSE(result.has_plan());
  EXPECT_EQ(*result.smallest_feasible, 12);
  EXPECT_EQ(result.floor, 12);
  EXPECT_EQ(result.blocker->moment, 1);
  EXPECT_EQ(result.blocker->bytes, 12);
  EXPECT_TRUE(result.blocker->proven);
  EXPECT_EQ(result.blocker->values, (std::vector<Id>{1, 0}));
}

}  // namespace
}  // namespace reprise
