#include "reprise/plan/hrevolve.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <queue>

#include "plan/planners.h"
#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"
#include "support/cases.h"
#include "support/chains.h"
#include "support/random_trace.h"

namespace reprise::hrevolve_test {
using namespace internal;
namespace {

const SimulateOptions any_budget{.record_live = false, .check_budget = false};

HRevolveProblem memory_and_disk(int layers, int memory, int disk, double disk_cost, double backward = 1) {
  return {layers, {{memory, 0, 0}, {disk, disk_cost, disk_cost}}, 1, backward};
}

TEST(HRevolve, HasTheKnownCosts) {
  EXPECT_EQ(hrevolve_cost(memory_and_disk(10, 2, 2, 2)), 30);
  EXPECT_EQ(hrevolve_cost(memory_and_disk(100, 5, 5, 2)), 357);
  EXPECT_EQ(hrevolve_cost(memory_and_disk(100, 5, 5, 5, 2)), 480);
}

TEST(HRevolve, IsRevolveWithoutADisk) {
  for (const int layers : {1, 2, 3, 7, 30, 100}) {
    for (const int slots : {1, 2, 3, 8, 40}) {
      EXPECT_EQ(hrevolve_cost({layers, {{slots, 0, 0}}, 1, 1}), revolve_steps(layers, slots))
          << layers << ", " << slots;
    }
  }
}

TEST(HRevolve, SchedulesCostWhatTheTableSaysAndKeepToTheirSlots) {
  testing::Random random(7);
  for (int i = 0; i < 400; ++i) {
    HRevolveProblem problem = memory_and_disk(random.between(1, 40), random.between(0, 5), random.between(1, 5), 0);
    problem.forward_cost = random.between(1, 4);
    problem.backward_cost = random.between(0, 4);
    for (StorageLevel& level : problem.levels) {
      level.write_cost = random.between(0, 6);
      level.read_cost = random.between(0, 6);
    }
    if (random.chance(0.2)) problem.levels.push_back({random.between(0, 4), 9, 9});
    const int levels = static_cast<int>(problem.levels.size());
    const auto report = testing::execute_steps(hrevolve_schedule(problem), problem.layers, levels);
    ASSERT_EQ(report.mistake, "") << i;
    EXPECT_EQ(report.tapes, problem.layers);
    double cost = report.advances * problem.forward_cost + problem.layers * problem.backward_cost;
    for (int k = 0; k < levels; ++k) {
      cost += report.writes[k] * problem.levels[k].write_cost + report.reads[k] * problem.levels[k].read_cost;
      EXPECT_LE(report.most_stored[k], problem.levels[k].slots) << i;
    }
    EXPECT_EQ(cost, hrevolve_cost(problem)) << i;
  }
}

// Every order of steps there is, by Dijkstra's algorithm.
double least_cost(const HRevolveProblem& problem) {
  struct Node {
    int left, current;  // layers left; the state at hand or -1
    unsigned stored[2];
    auto operator<=>(const Node&) const = default;
  };
  using Entry = std::pair<double, Node>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::map<Node, double> best;
  const auto reach = [&](double cost, const Node& node) {
    const auto [at, fresh] = best.emplace(node, cost);
    if (!fresh && at->second <= cost) return;
    at->second = cost;
    queue.push({cost, node});
  };
  reach(0, {problem.layers, 0, {0, 0}});
  while (!queue.empty()) {
    const auto [cost, node] = queue.top();
    queue.pop();
    if (cost > best[node]) continue;
    if (node.left == 0) return cost;
    Node next = node;
    next.current = node.current + 1;
    if (node.current >= 0 && next.current < node.left) reach(cost + problem.forward_cost, next);
    if (next.current == node.left)
      reach(cost + problem.backward_cost, {node.left - 1, -1, {node.stored[0], node.stored[1]}});
    for (int k = 0; k < 2; ++k) {
      const StorageLevel& level = problem.levels[k];
      next = node;
      if (node.current >= 0 && __builtin_popcount(node.stored[k]) < level.slots) {
        next.stored[k] |= 1U << node.current;
        reach(cost + level.write_cost, next);
      }
      for (int state = 0; state < node.left; ++state) {
        if (!(node.stored[k] >> state & 1)) continue;
        next = node;
        next.current = state;
        reach(cost + level.read_cost, next);
        next = node;
        next.stored[k] &= ~(1U << state);
        reach(cost, next);
      }
    }
  }
  return -1;
}

TEST(HRevolve, IsNeverBetterThanTheBestOrderOfStepsAndMostlyIsIt) {
  int equal = 0, all = 0;
  for (int layers = 2; layers <= 7; ++layers) {
    for (const int memory : {1, 2}) {
      for (const int disk : {1, 2}) {
        for (const double cost : {0.5, 1.0, 3.0}) {
          const HRevolveProblem problem = memory_and_disk(layers, memory, disk, cost);
          const double least = least_cost(problem);
          ASSERT_GE(hrevolve_cost(problem), least) << layers << ", " << memory << ", " << disk << ", " << cost;
          equal += hrevolve_cost(problem) == least;
          ++all;
        }
      }
    }
  }
  EXPECT_GE(equal, all * 9 / 10) << "of " << all;
}

// The recurrence as it is written in books, looking at every distance.
double cost_by_recurrence(const HRevolveProblem& problem) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto layers = static_cast<std::size_t>(problem.layers);
  std::vector<double> without(layers + 1, infinite);  // by layers: on faster levels alone
  without[1] = problem.backward_cost;
  for (const StorageLevel& level : problem.levels) {
    std::vector<double> fresh = without;
    for (int slot = 0; slot < level.slots; ++slot) {
      std::vector<double> stored = without, next = without;
      for (std::size_t l = 2; l <= layers; ++l) {
        for (std::size_t x = 1; x < l; ++x) {
          const double there = static_cast<double>(x) * problem.forward_cost + level.read_cost;
          stored[l] = std::min(stored[l], there + stored[x] + fresh[l - x]);
        }
      }
      for (std::size_t l = 1; l <= layers; ++l) next[l] = std::min(next[l], level.write_cost + stored[l]);
      if (next == fresh) break;
      fresh = std::move(next);
    }
    without = std::move(fresh);
  }
  return without[layers];
}

TEST(HRevolve, LooksAtFewDistancesAndCostsWhatLookingAtAllOfThemDoes) {
  testing::Random random(11);
  for (int i = 0; i < static_cast<int>(testing::cases(150)); ++i) {
    HRevolveProblem problem = memory_and_disk(random.between(1, i % 10 == 0 ? 1500 : 400), random.between(0, 6),
                                              random.between(1, i % 3 == 0 ? 40 : 6), 0);
    problem.forward_cost = random.chance(0.5) ? 1 : random.between(1, 400) / 128.0;
    problem.backward_cost = random.between(0, 4);
    const double unit = random.chance(0.5) ? 1 : 0.125;
    StorageLevel& disk = problem.levels[1];
    disk.write_cost = random.between(0, 200) * unit;
    disk.read_cost = random.between(0, 200) * unit;
    if (random.chance(0.2)) problem.levels[0].write_cost = problem.levels[0].read_cost = random.between(1, 9) * unit;
    if (random.chance(0.3)) problem.levels.push_back({random.between(0, 4), 300, 200});
    const double expected = cost_by_recurrence(problem);
    EXPECT_NEAR(hrevolve_cost(problem), expected, 1e-9 * expected) << i;
    const int levels = static_cast<int>(problem.levels.size());
    const auto report = testing::execute_steps(hrevolve_schedule(problem), problem.layers, levels);
    ASSERT_EQ(report.mistake, "") << i;
    double cost = report.advances * problem.forward_cost + problem.layers * problem.backward_cost;
    for (int k = 0; k < levels; ++k) {
      cost += report.writes[k] * problem.levels[k].write_cost + report.reads[k] * problem.levels[k].read_cost;
      EXPECT_LE(report.most_stored[k], problem.levels[k].slots) << i;
    }
    EXPECT_NEAR(cost, expected, 1e-9 * expected) << i;
  }
}

TEST(HRevolve, NumbersThatCannotBeAreErrors) {
  EXPECT_THROW((void)hrevolve_cost(memory_and_disk(5, 0, 0, 1)), BadOption);
  EXPECT_THROW((void)hrevolve_cost(memory_and_disk(-5, 1, 1, 1)), BadOption);
  EXPECT_THROW((void)hrevolve_cost(memory_and_disk(5, 1, -1, 1)), BadOption);
  EXPECT_THROW((void)hrevolve_schedule(memory_and_disk(5, 1, 1, -1)), BadOption);
  EXPECT_EQ(hrevolve_cost(memory_and_disk(0, 0, 0, 1)), 0);
  EXPECT_EQ(hrevolve_cost(memory_and_disk(1, 0, 0, 1)), 1);
}

TEST(PlanHRevolve, CostsWhatTheTableSays) {
  testing::ChainForm form = testing::equal_layers(100, {.tape = 1});
  for (const bool events : {false, true}) {
    form.events = events;
    Trace trace = testing::chain_trace(form);
    trace.tiers = {testing::disk_for(trace, 2, 2)};
    trace.tiers[0].capacity = 5;
    PlanOptions options;
    options.planner = HRevolvePlanner{5};
    const Simulation simulation = simulate(trace, *plan_hrevolve(trace, options), any_budget);
    ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
    // With one taping step for each layer, and backward at cost 1.
    EXPECT_LE(simulation.cost, 357 + 100);
    EXPECT_GT(simulation.gets, 0u);
    EXPECT_LE(simulation.tier_peaks[0], 5);
  }
}

TEST(PlanHRevolve, FitsABudgetThatRevolveCannot) {
  Trace trace = testing::graph_chain(40);
  PlanOptions options;
  options.budget = 3;
  const double without = simulate(trace, *plan_revolve(trace, options), {}).cost;
  trace.tiers = {testing::disk_for(trace, 1, 1)};
  const Simulation simulation = simulate(trace, *plan_hrevolve(trace, options), {});
  ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence;
  EXPECT_LT(simulation.cost, without);
  options.budget = 2;  // the input itself can go to disk
  EXPECT_TRUE(simulate(trace, *plan_hrevolve(trace, options), {}).valid());
}

TEST(PlanHRevolve, SaysWhatTheTraceLacks) {
  const auto complaint = [](const Trace& trace) -> std::string {
    try {
      (void)plan_hrevolve(trace, {});
    } catch (const BadOption& error) {
      return error.what();
    }
    return "";
  };
  Trace trace = testing::graph_chain(6);
  EXPECT_EQ(complaint(trace), "planner h-revolve needs a tier that does not count in the budget; the trace has none");
  trace.tiers = {testing::disk_for(trace, 1, 1)};
  EXPECT_EQ(complaint(trace), "");
  trace.tiers[0].entries.clear();
  EXPECT_EQ(complaint(trace), "planner h-revolve: tier 'disk' takes none of the chain's states");
}

TEST(PlanHRevolve, IsValidOnRandomChains) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    testing::Random random(seed);
    Trace trace = testing::chain_trace(testing::random_chain(seed, random.between(1, 30)));
    Tier disk = testing::disk_for(trace, random.between(0, 9), random.between(0, 9));
    if (random.chance(0.3)) disk.capacity = random.between(0, 40);
    if (random.chance(0.3)) std::erase_if(disk.entries, [&](const TierEntry& e) { return e.value % 3 == 1; });
    trace.tiers = {disk};
    PlanOptions options;
    options.budget = random.between(1, 60);
    if (random.chance(0.5)) options.planner = HRevolvePlanner{random.between(1, 6)};
    try {
      const Simulation simulation = simulate(trace, *plan_hrevolve(trace, options), any_budget);
      ASSERT_TRUE(simulation.valid()) << "seed " << seed << ": " << simulation.broken->sentence;
    } catch (const BadOption&) {  // a tier that takes none of the states
    }
  }
}

}  // namespace
}  // namespace reprise::hrevolve_test
