#include "plan/chains/chain_programme.h"

#include <gtest/gtest.h>

#include "plan/chains/chain_layers.h"
#include "plan/chains/chain_plan.h"
#include "plan/planners.h"
#include "reprise/trace/error.h"
#include "support/chains.h"
#include "support/random_trace.h"
#include "support/shortest_plan.h"

namespace reprise {
using namespace internal;
namespace {

const SimulateOptions any_budget{.record_live = false, .check_budget = false};

Simulation planned(const Trace& trace, Bytes budget) {
  PlanOptions options;
  options.budget = budget;
  return simulate(trace, *plan_chain(trace, options), any_budget);
}

TEST(ChainProgramme, HasTheKnownCostsOnChainsOfEqualLayers) {
  const std::vector<double> ten{35, 26, 24, 23, 22, 21, 20, 19, 19};
  for (std::size_t i = 0; i < ten.size(); ++i) {
    const Bytes budget = static_cast<Bytes>(i) + 3;
    const Simulation simulation = planned(testing::graph_chain(10), budget);
    EXPECT_EQ(simulation.cost, ten[i]) << budget;
    EXPECT_LE(simulation.peak, budget);
  }
  const std::vector<std::pair<Bytes, double>> hundred{{4, 715},  {5, 504},  {6, 423},  {7, 388},  {8, 356}, {10, 335},
                                                      {12, 310}, {17, 282}, {22, 277}, {32, 267}, {52, 247}};
  for (const auto& [budget, cost] : hundred) {
    const Simulation simulation = planned(testing::graph_chain(100), budget);
    EXPECT_EQ(simulation.cost, cost) << budget;
    EXPECT_LE(simulation.peak, budget);
  }
}

TEST(ChainProgramme, IsExactlyRecordedByTheInterpreterOnRandomChains) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::Random random(seed);
    const Trace trace = testing::chain_trace(testing::random_chain(seed, random.between(1, 25)));
    const Timeline timeline(trace);
    const ChainShape chain = chain_of(trace, timeline, "chain");
    const auto problem = measure_chain(trace, timeline, chain);
    const Bytes budget = random.between(5, 100);
    const int units = random.chance(0.5) ? 500 : random.between(1, 30);
    const auto rounding = seed % 3 ? ChainProgrammeOptions::Rounding::up : ChainProgrammeOptions::Rounding::even;
    const auto solution = solve_chain(problem, budget, {.units = units, .rounding = rounding});
    if (!solution) continue;
    EXPECT_EQ(testing::execute_steps(solution->steps, static_cast<int>(problem.layers.size())).mistake, "");
    const Plan plan = plan_of_steps(trace, timeline, chain, solution->steps, std::nullopt, budget);
    const Simulation simulation = simulate(trace, plan, any_budget);
    ASSERT_TRUE(simulation.valid()) << "seed " << seed << ": " << simulation.broken->sentence;
    EXPECT_LE(simulation.peak, solution->peak) << seed;
    EXPECT_LE(solution->peak, budget) << seed;
    EXPECT_LE(simulation.cost, solution->cost) << seed;
  }
}

TEST(ChainProgramme, IsNeverBetterThanTheBestPlanAndMostlyIsItOnChainsOfUpToSevenLayers) {
  int all = 0, equal = 0, infeasible = 0, missed = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    testing::Random random(seed);
    testing::ChainForm form = testing::random_chain(seed, random.between(2, seed % 10 == 0 ? 7 : 5));
    if (form.layers.size() > 5) form.events = true;
    const Trace trace = testing::chain_trace(form);
    if (trace.value_count() > 15) continue;
    Plan everything;
    for (Id m = 0; m < trace.moment_count(); ++m) everything.actions.push_back(Action::run(m));
    const Bytes most = simulate(trace, everything, any_budget).peak;
    for (const double share : {0.5, 0.65, 0.8, 0.9}) {
      const Bytes budget = static_cast<Bytes>(share * static_cast<double>(most));
      const auto best = testing::shortest_plan(trace, budget);
      const Simulation simulation = planned(trace, budget);
      ASSERT_TRUE(simulation.valid()) << seed;
      const bool fits = simulation.peak <= budget;
      infeasible += !best;
      missed += best && !fits;
      if (!fits) continue;
      ASSERT_TRUE(best.has_value()) << seed;
      ASSERT_GE(simulation.cost, *best) << seed;
      equal += simulation.cost == *best;
      ++all;
    }
  }
  EXPECT_GT(all, 200);
  EXPECT_GE(equal, all * 8 / 10) << "of " << all;
  EXPECT_LE(missed, all / 10) << infeasible;
}

TEST(ChainProgramme, RoundingIsReportedAndExactWhenSizesDivideEvenly) {
  testing::ChainForm form = testing::equal_layers(20, {.state = 1000, .tape = 3000});
  form.input = 2000;
  const Trace trace = testing::chain_trace(form);
  const Timeline timeline(trace);
  const auto problem = measure_chain(trace, timeline, chain_of(trace, timeline, "chain"));
  const auto exact = solve_chain(problem, 30'000);
  ASSERT_TRUE(exact);
  EXPECT_TRUE(exact->exact);
  EXPECT_EQ(exact->unit, 1000);
  const auto rounded = solve_chain(problem, 30'000, {.units = 7});
  ASSERT_TRUE(rounded);
  EXPECT_FALSE(rounded->exact);
  EXPECT_GE(rounded->cost, exact->cost);
}

TEST(ChainProgramme, WithFewLongPartsIsValidNeverBetterThanWithAllAndTheSameIfThereAreAll) {
  int all = 0, equal = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::Random random(seed);
    const Trace trace = testing::chain_trace(testing::random_chain(seed, random.between(2, 40)));
    const Timeline timeline(trace);
    const ChainShape chain = chain_of(trace, timeline, "chain");
    const auto problem = measure_chain(trace, timeline, chain);
    const int layers = static_cast<int>(problem.layers.size());
    const Bytes budget = random.between(8, 120);
    const auto exact = solve_chain(problem, budget);
    LongParts parts{random.between(1, 6), {}}, every{random.between(1, 6), {}};
    for (int t = 1; t <= layers; ++t) {
      every.end_with.push_back(t);
      if (random.chance(0.3)) parts.end_with.push_back(t);
    }
    const auto same = solve_chain(problem, budget, {.long_parts = every});
    ASSERT_EQ(same.has_value(), exact.has_value()) << seed;
    if (exact) EXPECT_EQ(same->cost, exact->cost) << seed;
    const auto fewer = solve_chain(problem, budget, {.long_parts = parts});
    if (!fewer) continue;
    ASSERT_TRUE(exact.has_value()) << seed;
    EXPECT_GE(fewer->cost, exact->cost) << seed;
    EXPECT_LE(fewer->peak, budget) << seed;
    EXPECT_EQ(testing::execute_steps(fewer->steps, layers).mistake, "");
    const Plan plan = plan_of_steps(trace, timeline, chain, fewer->steps, std::nullopt, budget);
    const Simulation simulation = simulate(trace, plan, {});
    ASSERT_TRUE(simulation.valid()) << "seed " << seed << ": " << simulation.broken->sentence;
    EXPECT_LE(simulation.cost, fewer->cost) << seed;
    ++all;
    equal += fewer->cost == exact->cost;
  }
  EXPECT_GT(all, 150);
  EXPECT_GT(equal, all / 2);
}

TEST(ChainProgramme, CostNeverRisesWithTheBudget) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Trace trace = testing::chain_trace(testing::random_chain(seed, 15));
    const Timeline timeline(trace);
    const auto problem = measure_chain(trace, timeline, chain_of(trace, timeline, "chain"));
    double last = std::numeric_limits<double>::infinity();
    for (Bytes budget = 1; budget < 300; budget += 3) {
      const auto solution = solve_chain(problem, budget);
      if (!solution) continue;
      EXPECT_LE(solution->cost, last);
      last = solution->cost;
    }
    EXPECT_EQ(last, trace.total_cost()) << seed;
  }
}

TEST(ChainProgramme, RemembersTapesWhereThatIsWorthMoreThanStates) {
  // Room for all states or a few tapes; the tapes of the expensive layers are worth it.
  testing::ChainForm form = testing::equal_layers(6, {.state = 2, .tape = 2, .forward_cost = 1});
  form.layers[2].forward_cost = 100;
  const Trace trace = testing::chain_trace(form);
  const Simulation simulation = planned(trace, 16);
  EXPECT_LE(simulation.peak, 16);
  EXPECT_LT(simulation.replay_cost, 100);
}

TEST(PlanChain, GivesItsSmallestPeakWhenNothingFits) {
  const Simulation simulation = planned(testing::graph_chain(20), 1);
  EXPECT_TRUE(simulation.valid());
  EXPECT_EQ(simulation.peak, 3);
}

TEST(PlanChain, RefusesWhatIsNoChain) {
  EXPECT_THROW((void)plan_chain(testing::random_graph(3, 30), {}), BadOption);
}

TEST(PlanChain, CanBeCancelled) {
  const std::atomic<bool> cancel = true;
  PlanOptions options;
  options.cancel = &cancel;
  EXPECT_FALSE(plan_chain(testing::graph_chain(20), options).has_value());
}

TEST(PlanChainSeed, IsValidOnRandomTracesAndFitsWhenItSaysSo) {
  int layered = 0, fit = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    testing::RandomTraceOptions form;
    form.moments = 5 + static_cast<int>(seed % 40);
    form.events = seed % 3 == 0 ? 0 : 0.08;
    for (const Trace& trace : {testing::random_trace(seed, form), testing::random_graph(seed, form.moments),
                               testing::random_training_step(seed, form.moments / 2)}) {
      const Timeline timeline(trace);
      const ChainShape chain = coarse_chain_of(trace, timeline);
      if (chain.layers.empty()) continue;
      testing::Random random(seed);
      const Bytes budget = random.between(20, 200);
      const auto solution = solve_chain(measure_chain(trace, timeline, chain), budget);
      if (!solution) continue;
      const Plan plan = plan_of_steps(trace, timeline, chain, solution->steps, std::nullopt, budget);
      const Simulation simulation = simulate(trace, plan, any_budget);
      ASSERT_TRUE(simulation.valid()) << "seed " << seed << ": " << simulation.broken->sentence;
      EXPECT_LE(simulation.peak, solution->peak) << seed;
      EXPECT_LE(simulation.cost, solution->cost) << seed;
      layered += chain.layers.size() > 1;
      fit += simulation.peak <= budget;
      PlanOptions options;
      options.budget = budget;
      if (const auto seeded = plan_chain_seed(trace, options)) {
        ASSERT_TRUE(simulate(trace, *seeded, any_budget).valid()) << seed;
      }
    }
  }
  EXPECT_GT(layered, 200);
  EXPECT_GT(fit, 200);
}

TEST(NamedChainPlanners, AreValidOrRefuseOnRandomTraces) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    testing::RandomTraceOptions form;
    form.moments = 1 + static_cast<int>(seed % 12);
    form.events = seed % 2 ? 0 : 0.3;
    const Trace trace = testing::random_trace(seed, form);
    PlanOptions options;
    options.budget = 50;
    for (const auto planner : {plan_revolve, plan_hrevolve, plan_chain}) {
      try {
        const Simulation simulation = simulate(trace, *planner(trace, options), any_budget);
        ASSERT_TRUE(simulation.valid()) << "seed " << seed << ": " << simulation.broken->sentence;
      } catch (const BadOption&) {
      }
    }
  }
}

}  // namespace
}  // namespace reprise
