#include "reprise/chain/schedule.h"

#include <gtest/gtest.h>

#include <random>

#include "chain/toy.h"
#include "reprise/chain/loop.h"
#include "reprise/plan/hrevolve.h"
#include "reprise/plan/revolve.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"
#include "support/exhaustive.h"
#include "support/shortest_plan.h"

namespace reprise::schedule_test {
namespace {

using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::Toy;

const Numbers input = some_numbers(3, 1), seed = some_numbers(3, 2);

Simulation proof_of(const SchedulePointer& schedule, const ChainForm& form) {
  return simulate(chain_trace(form), schedule->plan(form));
}

// States besides the one that a layer goes on from and the one it makes, in bytes of one.
Bytes most_states(const SchedulePointer& schedule, Id layers) {
  return proof_of(schedule, equal_layers(layers)).peak;
}

// ---- every n ----

// Returns the number of states that are remembered after forward with one of them every n layers.
std::uint64_t remembered_every(int layers, int apart) {
  const int segments = (layers + apart - 1) / apart;
  return static_cast<std::uint64_t>(layers - (segments - 1) * (apart - 1));
}

TEST(EverySchedule, RemembersTheStateBeforeEveryNthLayerAndAllBehindTheLastOfThem) {
  const Toy toy;
  for (const int layers : {1, 7, 12, 13}) {
    for (const int n : {1, 2, 3, 5, 20}) {
      auto chain = toy.chain(layers);
      chain.schedule(schedule::every(n));
      (void)chain.forward(input);
      EXPECT_EQ(chain.statistics().remembered, remembered_every(layers, n));
      const int last = (layers - 1) / n * n;
      for (Id k = 0; k + 1 < layers; ++k) EXPECT_EQ(chain.remembers(k), (k + 1) % n == 0 || k >= last) << k;
    }
  }
}

TEST(EverySchedule, ReplaysEverySegmentButTheLastOnce) {
  struct Case {
    int layers, n;
    std::uint64_t replays, with_tapes;
  };
  for (const auto& [layers, n, replays, with_tapes] :
       {Case{4, 4, 0, 0}, {12, 3, 6, 9}, {12, 4, 6, 8}, {100, 10, 81, 90}, {48, 48, 0, 0}, {13, 4, 9, 12}}) {
    const Toy toy;
    auto chain = toy.chain(layers);
    chain.schedule(schedule::every(n, std::nullopt));
    (void)chain.forward(input);
    chain.backward(seed);
    EXPECT_EQ(chain.statistics().replays, replays) << layers << " every " << n;
    Chain<Numbers, Numbers, Numbers> taped(
        layers, [](int, const Numbers& x, Numbers*) { return x; },
        [](int, const Numbers&, const Numbers&, Numbers gradient) { return gradient; });
    taped.schedule(schedule::every(n, std::nullopt));
    (void)taped.forward(input);
    taped.backward(seed);
    EXPECT_EQ(taped.statistics().replays, with_tapes) << layers << " every " << n;
  }
}

TEST(EverySchedule, WithAMaximumRemembersStatesFurtherApartAndNeverMoreThanThat) {
  const Toy toy;
  for (const int layers : {1, 64, 65, 100, 257}) {
    for (const int maximum : {1, 2, 7, 64}) {
      auto chain = toy.chain(layers);
      chain.schedule(schedule::every(1, maximum));
      const auto plain = toy.plain(first_layers(layers), input, seed);
      (void)chain.forward(input);
      const int apart = (layers + maximum - 1) / maximum;
      EXPECT_EQ(chain.statistics().remembered, remembered_every(layers, apart));
      const int last = (layers - 1) / apart * apart;
      EXPECT_LE(last / apart + 1, maximum);
      for (Id k = 0; k + 1 < layers; ++k) EXPECT_EQ(chain.remembers(k), (k + 1) % apart == 0 || k >= last);
      EXPECT_EQ(chain.backward(seed), plain.gradient);
    }
  }
}

TEST(EverySchedule, HasADefaultOfFourAndAMaximumOfSixtyFour) {
  const Toy toy;
  auto chain = toy.chain(256);
  (void)chain.forward(input);
  EXPECT_EQ(chain.statistics().remembered, remembered_every(256, 4));
  auto longer = toy.chain(257);
  (void)longer.forward(input);
  EXPECT_EQ(longer.statistics().remembered, remembered_every(257, 5));
  longer.schedule(schedule::every(4, std::nullopt));
  (void)longer.forward(input);
  EXPECT_EQ(longer.statistics().remembered, remembered_every(257, 4));
}

TEST(EverySchedule, ReplaysEachLayerAtMostOnce) {
  const Toy toy;
  auto chain = toy.chain(30);
  chain.schedule(schedule::every(7));
  (void)chain.forward(input);
  chain.backward(seed);
  for (const auto& [layer, times] : toy.forwards) EXPECT_LE(times, 2) << layer;
}

TEST(Schedules, RefuseNumbersThatMakeNoSense) {
  EXPECT_THROW((void)schedule::every(0), BadOption);
  EXPECT_THROW((void)schedule::every(4, 0), BadOption);
  EXPECT_THROW((void)schedule::slots(0), BadOption);
  EXPECT_THROW((void)schedule::online(0), BadOption);
  EXPECT_THROW((void)schedule::budget(-1), BadOption);
  EXPECT_THROW((void)schedule::selective(-1), BadOption);
  EXPECT_THROW((void)schedule::memory_and_disk({.memory_slots = 0, .disk_slots = 0}), BadOption);
  EXPECT_THROW((void)schedule::memory_and_disk({.memory_slots = 1, .read_cost = -1}), BadOption);
}

// ---- slots ----

// A chain with tapes runs forward once for each tape, so its calls are Revolve's steps.
std::uint64_t calls_with_tapes(int layers, const SchedulePointer& schedule) {
  Chain<Numbers, Numbers, Numbers> chain(
      layers, [](int, const Numbers& x, Numbers*) { return x; },
      [](int, const Numbers&, const Numbers&, Numbers gradient) { return gradient; });
  chain.schedule(schedule);
  (void)chain.forward({1});
  chain.backward({1});
  return chain.statistics().forward_calls;
}

TEST(SlotsSchedule, MakesExactlyTheFewestStepsThereAre) {
  for (int layers = 1; layers <= 300; layers += layers < 40 ? 1 : 13) {
    for (int slots = 1; slots <= layers; slots += slots < 12 ? 1 : 29) {
      if (revolve_steps(layers, slots) > 20'000) continue;
      EXPECT_EQ(calls_with_tapes(layers, schedule::slots(slots)),
                static_cast<std::uint64_t>(revolve_steps(layers, slots)))
          << layers << " layers, " << slots << " slots";
    }
  }
  EXPECT_EQ(calls_with_tapes(1000, schedule::slots(5)), 7284u);
  EXPECT_EQ(calls_with_tapes(1000, schedule::slots(10)), 4636u);
  EXPECT_EQ(calls_with_tapes(1000, schedule::slots(20)), 3747u);
}

TEST(SlotsSchedule, WithoutTapesTheLastForwardOfEachLayerIsPartOfItsBackward) {
  const Toy toy;
  for (const int layers : {1, 2, 9, 33}) {
    auto chain = toy.chain(layers);
    for (const int slots : {1, 2, 4}) {
      chain.schedule(schedule::slots(slots));
      (void)chain.forward(input);
      chain.backward(seed);
      EXPECT_EQ(chain.statistics().forward_calls,
                static_cast<std::uint64_t>(revolve_steps(layers, slots) - layers + 1));
    }
  }
}

TEST(SlotsSchedule, RemembersNoMoreStatesThanSlots) {
  for (const int slots : {1, 2, 3, 8}) EXPECT_LE(most_states(schedule::slots(slots), 60), slots + 2) << slots;
}

// ---- memory and disk ----

TEST(MemoryAndDiskSchedule, CostsWhatHRevolveCosts) {
  struct Case {
    schedule::TwoLevels levels;
    Id layers;
    double cost;
  };
  for (const auto& [levels, layers, cost] :
       {Case{{.memory_slots = 2, .disk_slots = 2, .write_cost = 2, .read_cost = 2}, 10, 30},
        Case{{.memory_slots = 5, .disk_slots = 5, .write_cost = 2, .read_cost = 2}, 100, 357},
        Case{{.memory_slots = 5, .disk_slots = 5, .write_cost = 5, .read_cost = 5, .backward_cost = 2}, 100, 480}}) {
    ChainForm form = equal_layers(layers);
    for (auto& layer : form.layers) layer.backward_cost = levels.backward_cost;
    add_disk_tier(form, levels.write_cost, levels.read_cost);
    const Simulation proof = proof_of(schedule::memory_and_disk(levels), form);
    ASSERT_TRUE(proof.valid()) << proof.broken->sentence;
    // Not counted by H-Revolve: the last layer's forward, which is the taping one.
    EXPECT_EQ(proof.cost - 1, cost);
    EXPECT_LE(proof.peak, levels.memory_slots + 2);
  }
}

TEST(MemoryAndDiskSchedule, NeedsADisk) {
  const Toy toy;
  auto chain = toy.chain(10);
  chain.schedule(schedule::memory_and_disk({.memory_slots = 2, .disk_slots = 2}));
  EXPECT_THROW((void)chain.forward(input), ChainError);
}

// ---- online ----

TEST(OnlineSchedule, TakesAtMostAFifthMoreStepsThanKnowingTheNumberOfLayers) {
  const Toy toy;
  auto chain = toy.chain(ChainLayers::unknown());
  for (const int slots : {3, 4, 6, 10}) {
    chain.schedule(schedule::online(slots));
    for (int layers = 1; layers <= 400; layers += 1 + layers / 7) {
      (void)chain.forward_until(input, [&](Id position, const Numbers&) { return position + 1 == layers; });
      chain.backward(seed);
      // Counted as Revolve does: one taping step for each layer, which here is part of backward.
      const auto steps = static_cast<double>(chain.statistics().forward_calls) - 1 + layers;
      EXPECT_LE(steps, 1.2 * static_cast<double>(revolve_steps(layers, slots))) << layers << " layers, " << slots;
    }
  }
}

// ---- selective ----

TEST(SelectiveSchedule, RemembersAStateWhenRebuildingItWouldCostTheThreshold) {
  const Toy toy;
  auto chain = toy.chain(8);
  chain.schedule(schedule::selective(10));
  const double costs[] = {4, 4, 4, 20, 1, 1, 1, 100};
  Numbers state = input;
  ChainLoop loop(chain);
  for (Id k = 0; k < 8; ++k) state = loop.forward(state, costs[k]);
  for (Id k = 0; k < 7; ++k) EXPECT_EQ(chain.remembers(k), k == 2 || k == 3) << k;
  EXPECT_EQ(chain.backward(seed), toy.plain(first_layers(8), input, seed).gradient);
}

// ---- bytes ----

constexpr std::chrono::hours no_clock(1);  // moves are counted instead

ChainForm random_form(std::uint64_t seed_, Id layers, bool tapes) {
  std::mt19937_64 random(seed_);
  const auto up_to = [&](int most) { return static_cast<Bytes>(random() % (most + 1)); };
  ChainForm form = equal_layers(layers);
  form.tapes = tapes;
  form.input = 1 + up_to(5);
  for (auto& layer : form.layers) {
    layer = {1 + up_to(5),
             tapes ? up_to(6) : 0,
             up_to(1),
             up_to(2),
             1.0 + static_cast<double>(up_to(4)),
             1.0 + static_cast<double>(up_to(4))};
  }
  return form;
}

Bytes plain_peak(const ChainForm& form) {
  return proof_of(schedule::everything(), form).peak;
}

TEST(BudgetSchedule, IsOptimalByExhaustiveSearchAndByASecondOracleUpToSevenLayers) {
  int feasible = 0, optimal = 0, by_programme = 0;
  for (std::uint64_t s = 1; s <= 60; ++s) {
    const bool tapes = s % 3 == 0;
    const Id layers = tapes ? 2 + static_cast<Id>(s % 4) : 3 + static_cast<Id>(s % 5);
    const ChainForm form = random_form(s, layers, tapes);
    const Trace trace = chain_trace(form);
    const Bytes peak = plain_peak(form);
    for (const Bytes budget : {peak, peak * 3 / 4, peak / 2}) {
      const auto shortest = testing::shortest_plan(trace, budget);
      const auto exhaustive = testing::cheapest_plan(trace, budget);
      ASSERT_EQ(shortest.has_value(), exhaustive.has_value());
      if (!shortest) {
        EXPECT_THROW((void)plan_chain_within(form, budget, no_clock, 20'000), BadOption);
        continue;
      }
      EXPECT_DOUBLE_EQ(*shortest, exhaustive->cost);
      const ChainBudgetPlan found = plan_chain_within(form, budget, no_clock, 20'000);
      ASSERT_TRUE(found.simulation.valid());
      EXPECT_LE(found.simulation.peak, budget);
      EXPECT_GE(found.simulation.cost, *shortest - 1e-9);
      EXPECT_LE(found.lower_bound, *shortest + 1e-9);
      EXPECT_TRUE(found.exact);  // a unit of one byte
      ++feasible;
      by_programme += found.by_programme;
      optimal += found.simulation.cost <= *shortest + 1e-9;
    }
  }
  EXPECT_GT(feasible, 90);
  EXPECT_EQ(optimal, feasible);
  EXPECT_GT(by_programme, feasible / 2);
}

TEST(BudgetSchedule, ReportsToWhatSizesWereRounded) {
  ChainForm form = equal_layers(20);
  for (std::size_t k = 0; k < form.layers.size(); ++k) form.layers[k].state = 1000003 + static_cast<Bytes>(k);
  form.input = 999983;
  const ChainBudgetPlan found = plan_chain_within(form, 6'000'000, no_clock, 1'000);
  EXPECT_FALSE(found.exact);
  EXPECT_GT(found.unit, 1);
  EXPECT_LE(found.unit, 6'000'000 / 500 + 1);
  for (std::size_t k = 0; k < form.layers.size(); ++k) form.layers[k].state = 1'000'000;
  form.input = 1'000'000;
  EXPECT_TRUE(plan_chain_within(form, 6'000'000, no_clock, 1'000).exact);
}

TEST(BudgetSchedule, SaysTheSmallestBudgetThatIsFeasible) {
  const ChainForm form = equal_layers(10);
  try {
    (void)plan_chain_within(form, 1, no_clock, 1'000);
    ADD_FAILURE();
  } catch (const BadOption& error) {
    EXPECT_NE(std::string(error.what()).find("budget is 1 bytes"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("is 3"), std::string::npos) << error.what();
  }
}

// Layers of different widths, so that states differ in size.
Chain<Numbers> funnel(int layers) {
  const auto width = [layers](int layer) { return static_cast<std::size_t>(4 + (layer * 7) % 19 + layers % 3); };
  return {layers,
          [width](int layer, const Numbers& x) {
            Numbers y(width(layer));
            for (std::size_t i = 0; i < y.size(); ++i)
              y[i] = std::sin(x[i % x.size()] + 0.1 * layer + 0.01 * static_cast<double>(i));
            return y;
          },
          [](int layer, const Numbers& x, Numbers gradient) {
            Numbers result(x.size(), 0);
            for (std::size_t i = 0; i < gradient.size(); ++i) {
              result[i % x.size()] +=
                  gradient[i] * std::cos(x[i % x.size()] + 0.1 * layer + 0.01 * static_cast<double>(i));
            }
            return result;
          }};
}

TEST(BudgetSchedule, ExecutedOnMeasuredSizesStaysWithinTheBudgetBitForBit) {
  for (const int layers : {8, 30}) {
    auto chain = funnel(layers);
    chain.measure(input);
    ChainForm form = chain.sizes();
    for (auto& layer : form.layers) layer.forward_cost = layer.backward_cost = 1;  // the same plan every time
    chain.sizes(form);
    chain.enabled(false);
    const Numbers result = chain.forward(input);
    const Numbers gradient = chain.backward(result);
    chain.enabled(true);
    const Bytes peak = plain_peak(form);
    for (const double share : {1.0, 0.8, 0.6}) {
      const auto budget = static_cast<Bytes>(share * static_cast<double>(peak));
      chain.schedule(schedule::budget(budget, std::chrono::milliseconds(300)));
      EXPECT_EQ(chain.forward(input), result);
      EXPECT_EQ(chain.backward(result), gradient);
      const Simulation proof = simulate(chain.trace(), chain.plan());
      ASSERT_TRUE(proof.valid());
      EXPECT_LE(proof.peak, budget);
      EXPECT_LE(chain.statistics().peak_stored, budget);
      EXPECT_EQ(chain.statistics().replays, proof.replays);
    }
  }
}

TEST(BudgetSchedule, NeedsSizesOfAllLayers) {
  auto chain = funnel(6);
  chain.schedule(schedule::budget(100'000));
  EXPECT_THROW((void)chain.forward(input), ChainError);
  chain.measure(input);
  EXPECT_NO_THROW((void)chain.forward(input));
  ChainForm fewer = chain.sizes();
  fewer.layers.pop_back();
  EXPECT_THROW(chain.sizes(fewer), BadOption);
}

// ---- plans ----

TEST(Schedules, MakePlansThatTheInterpreterAcceptsWithAndWithoutTapesAndPackedMemory) {
  for (const bool tapes : {false, true}) {
    for (const bool packed : {false, true}) {
      for (const Id layers : {0, 1, 2, 5, 33}) {
        ChainForm form = equal_layers(layers);
        form.tapes = tapes;
        if (packed) add_packed_tier(form, 0.25, 0.5);
        for (const auto& schedule :
             {schedule::everything(), schedule::every(1), schedule::every(3), schedule::every(4, 2), schedule::slots(1),
              schedule::slots(3), schedule::slots(50), schedule::online(3), schedule::selective(2)}) {
          const Simulation proof = proof_of(schedule, form);
          EXPECT_TRUE(proof.valid()) << layers << " layers: " << proof.broken->sentence;
          if (!packed) EXPECT_EQ(proof.puts, 0u);
          if (packed && layers > 1) EXPECT_GT(proof.puts, 0u) << layers;
        }
      }
    }
  }
}

TEST(Schedules, APlanThatMakesNoSenseIsRefusedWithTheInterpretersSentence) {
  class Nonsense : public Schedule {
   public:
    Plan plan(const ChainForm& form) const override {
      return plan_of_steps(form, {{ChainStep::Kind::advance, 1}, {ChainStep::Kind::advance, 2}});
    }
  };
  const Toy toy;
  auto chain = toy.chain(2);
  chain.schedule(std::make_shared<Nonsense>());
  EXPECT_THROW((void)chain.forward(input), BadOption);
  EXPECT_THROW(chain.schedule(nullptr), BadOption);
}

}  // namespace
}  // namespace reprise::schedule_test
