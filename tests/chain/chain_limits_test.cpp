// Budgets that hold, whatever the sizes turn out to be.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "chain/toy.h"
#include "reprise/chain/loop.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::expect_chain_error;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::TemporaryFolder;
using testing::Toy;

constexpr Bytes number_bytes = sizeof(double);

// ---- memory ----

// A chain with tapes of which everybody can change the size.
struct Taped {
  std::size_t tape = 10;
  Toy toy;
  Chain<Numbers, Numbers, Numbers> chain;

  explicit Taped(int layers)
      : chain(
            layers,
            [this](int layer, const Numbers& x, Numbers* wanted) {
              if (wanted) wanted->assign(tape, 1);
              return toy.forward(layer, x);
            },
            [this](int layer, const Numbers& x, const Numbers&, const Numbers& gradient) {
              return toy.backward(layer, x, gradient);
            }) {}
};

TEST(ChainLimit, TapesLargerThanMeasuredAreAnErrorThatNamesThemIfNoPlanFits) {
  Taped taped(40);
  taped.chain.measure(some_numbers(10));
  taped.chain.schedule(schedule::budget(4000, 50ms));
  taped.tape = 500;
  expect_chain_error(
      [&] {
        (void)taped.chain.forward(some_numbers(10));
        taped.chain.backward(some_numbers(10));
      },
      "budget is 4000 bytes");
  EXPECT_LE(taped.chain.statistics().peak_stored, 4000);
  taped.tape = 10;  // and the chain can be run again
  const auto plain = taped.toy.plain(first_layers(40), some_numbers(10), some_numbers(10, 2));
  EXPECT_EQ(taped.chain.forward(some_numbers(10)), plain.result);
  EXPECT_EQ(taped.chain.backward(some_numbers(10, 2)), plain.gradient);
}

TEST(ChainLimit, TapesLargerThanMeasuredLeadToANewPlanWhereOneFits) {
  for (const std::size_t tape : {12u, 30u, 60u}) {
    Taped taped(40);
    taped.chain.measure(some_numbers(10));
    taped.chain.schedule(schedule::budget(4000, 50ms));
    taped.tape = tape;
    const auto plain = taped.toy.plain(first_layers(40), some_numbers(10), some_numbers(10, 2));
    std::uint64_t calls = 0;
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(taped.chain.forward(some_numbers(10)), plain.result);
      EXPECT_EQ(taped.chain.backward(some_numbers(10, 2)), plain.gradient);
      EXPECT_LE(taped.chain.statistics().peak_stored, 4000);
      EXPECT_EQ(taped.chain.statistics().forward_calls, 40 + taped.chain.statistics().replays);
      EXPECT_EQ(taped.chain.statistics().backward_calls, 40u);
      if (pass == 1) EXPECT_LE(taped.chain.statistics().forward_calls + 40, calls);  // nothing to measure any more
      calls = taped.chain.statistics().forward_calls;
    }
    EXPECT_EQ(taped.chain.sizes().layers[20].tape, static_cast<Bytes>(tape) * number_bytes);
  }
}

// Layers whose states have this width.
struct Wide {
  std::size_t width = 8;
  int from = 0;  // the first layer to use it; earlier ones have 8
  Chain<Numbers> chain;

  [[nodiscard]] Numbers forward(int layer, const Numbers& x) const {
    Numbers y(layer < from ? 8 : width);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(x[i % x.size()] + layer);
    return y;
  }
  static Numbers backward(int layer, const Numbers& x, const Numbers& gradient) {
    Numbers result(x.size(), 0);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      result[i % x.size()] += gradient[i] * std::cos(x[i % x.size()] + layer);
    }
    return result;
  }
  // Everything remembered.
  std::pair<Numbers, Numbers> plain(int layers, const Numbers& input) const {
    std::vector<Numbers> states{input};
    for (int k = 0; k < layers; ++k) states.push_back(forward(k, states.back()));
    Numbers gradient = states.back();
    for (int k = layers; k-- > 0;) gradient = backward(k, states[k], gradient);
    return {states.back(), gradient};
  }
  explicit Wide(int layers)
      : chain(
            layers, [this](int layer, const Numbers& x) { return forward(layer, x); },
            [](int layer, const Numbers& x, const Numbers& gradient) { return backward(layer, x, gradient); }) {}
};

TEST(ChainLimit, StatesLargerThanMeasuredLeadToANewPlanAtWhateverLayerTheyAppear) {
  for (const int from : {0, 1, 17, 29}) {
    Wide wide(30);
    wide.chain.measure(some_numbers(8));
    wide.chain.schedule(schedule::budget(20 * 12 * number_bytes, 50ms));
    wide.width = 12;
    wide.from = from;
    const auto [result, gradient] = wide.plain(30, some_numbers(8));
    EXPECT_EQ(wide.chain.forward(some_numbers(8)), result) << from;
    EXPECT_EQ(wide.chain.backward(result), gradient) << from;
    EXPECT_LE(wide.chain.statistics().peak_stored, 20 * 12 * number_bytes);
    EXPECT_TRUE(simulate(wide.chain.trace(), wide.chain.plan()).valid());
  }
}

TEST(ChainLimit, StatesLargerThanMeasuredAreFineWhereTheLoopIsTheCallersToo) {
  for (const int from : {0, 17}) {
    Wide wide(30);
    wide.chain.measure(some_numbers(8));
    wide.chain.schedule(schedule::budget(20 * 12 * number_bytes, 50ms));
    wide.width = 12;
    wide.from = from;
    const auto [result, gradient] = wide.plain(30, some_numbers(8));
    ChainLoop loop(wide.chain);
    Numbers state = some_numbers(8);
    for (int k = 0; k < 30; ++k) state = loop.forward(state);
    EXPECT_EQ(state, result);
    Numbers back = result;
    for (int k = 0; k < 30; ++k) back = loop.backward(std::move(back));
    EXPECT_EQ(back, gradient);
    EXPECT_LE(wide.chain.statistics().peak_stored, 20 * 12 * number_bytes);
  }
}

TEST(ChainLimit, AnInputLargerThanMeasuredIsPlannedForOrRefusedBeforeAnyLayerHasRun) {
  const auto make = [] {
    return Chain<Numbers>(
        40, [](int layer, const Numbers& x) { return layer == 0 ? Numbers(100, x[0]) : x; },
        [](int, const Numbers&, Numbers gradient) { return gradient; });
  };
  auto chain = make();
  chain.measure(Numbers(100));
  chain.schedule(schedule::budget(8000, 50ms));
  expect_chain_error([&] { (void)chain.forward(Numbers(100'000)); }, "the input alone has 800000");
  EXPECT_EQ(chain.statistics().forward_calls, 0u);
  EXPECT_EQ(chain.statistics().peak_stored, 0);

  (void)chain.forward(Numbers(400));
  chain.backward(Numbers(100));
  EXPECT_LE(chain.statistics().peak_stored, 8000);
  EXPECT_EQ(chain.sizes().input, 400 * number_bytes);
}

TEST(ChainLimit, GradientsLargerThanAssumedLeadToANewPlanOrAreAnError) {
  for (const auto& [wider, fits] : {std::pair{2, true}, {20, false}}) {
    Chain<Numbers> chain(
        30, [](int layer, const Numbers& x) { return Numbers(8, std::sin(x[0] + layer)); },
        [wider = wider](int, const Numbers&, const Numbers& gradient) {
          return Numbers(static_cast<std::size_t>(8 * wider), gradient[0] + 1);
        });
    chain.measure(Numbers(8));
    const Bytes budget = 12 * 8 * number_bytes;
    chain.schedule(schedule::budget(budget, 50ms));
    (void)chain.forward(Numbers(8));
    if (fits) {
      EXPECT_EQ(chain.backward(Numbers(8)), Numbers(16, 30));
      // The gradient that comes in and the one that goes out were in the plan.
      const Simulation proof = simulate(chain.trace(), chain.plan());
      EXPECT_LE(proof.peak, budget);
    } else {
      expect_chain_error([&] { chain.backward(Numbers(8)); }, "the gradient before layer 29");
    }
    EXPECT_LE(chain.statistics().peak_stored, budget);
  }
}

TEST(ChainLimit, GradientsThatAreLargerAtEveryLayerLeadToANewPlanEachTime) {
  const Bytes budget = 60 * 8 * number_bytes;
  Chain<Numbers> chain(
      20, [](int, const Numbers& x) { return x; },
      [](int, const Numbers&, const Numbers& gradient) { return Numbers(gradient.size() + 1, gradient[0] + 1); });
  chain.measure(Numbers(8));
  chain.schedule(schedule::budget(budget, 1ms));
  (void)chain.forward(Numbers(8));
  EXPECT_EQ(chain.backward(Numbers(8)), Numbers(28, 20));
  EXPECT_LE(chain.statistics().peak_stored, budget);
}

TEST(ChainLimit, LayersThatMakeOtherSizesEveryTimeAreAnErrorAndNoLoop) {
  std::size_t width = 8;
  Chain<Numbers> chain(
      10, [&](int, const Numbers&) { return Numbers(++width); },
      [](int, const Numbers&, Numbers gradient) { return gradient; });
  chain.measure(Numbers(8));
  chain.schedule(schedule::budget(100'000, 10ms));
  expect_chain_error([&] { (void)chain.forward(Numbers(8)); }, "the same sizes every time");
}

TEST(ChainLimit, CodedStatesLargerThanMeasuredStayWithinTheBudget) {
  const Bytes budget = 20 * 1000 * number_bytes;
  const Toy toy;
  auto chain = toy.chain(40);
  chain.codec(codec("zstd"));
  chain.measure(Numbers(1000));
  ChainForm form = chain.sizes();
  // Zeros take nothing, and coding costs nothing compared to a layer, so that everything is coded.
  for (auto& layer : form.layers) layer.forward_cost = layer.backward_cost = 1;
  chain.measure(Numbers(1000));
  chain.schedule(schedule::budget(budget, 100ms));
  const Numbers noise = some_numbers(1000);
  const auto plain = toy.plain(first_layers(40), noise, some_numbers(1000, 2));
  EXPECT_EQ(chain.forward(noise), plain.result);
  EXPECT_EQ(chain.backward(some_numbers(1000, 2)), plain.gradient);
  EXPECT_LE(chain.statistics().peak_stored, budget);
}

TEST(ChainLimit, StatesOnTheirWayToAndFromADiskAreInTheBudget) {
  const TemporaryFolder folder;
  const Toy toy;
  const Numbers input = some_numbers(1000), seed = some_numbers(1000, 2);
  auto chain = toy.chain(40);
  chain.disk({.folder = folder.path()});
  chain.measure(input);
  const auto plain = toy.plain(first_layers(40), input, seed);
  for (const Bytes budget : {36'000, 40'000, 60'000, 150'000, 300'000}) {
    chain.schedule(schedule::budget(budget, 100ms));
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    EXPECT_LE(chain.statistics().peak_stored, budget);
  }
}

// A chain whose sizes are drawn anew after it was measured: larger or smaller states, tapes, gradients, input, and
// contents that a codec can do more or less with.
struct Drawn {
  std::mt19937_64 random;
  int layers;
  std::vector<std::size_t> states, tapes;
  std::size_t gradient = 1;  // times that of the state
  bool noise = false;
  Chain<Numbers, Numbers, Numbers> chain;

  [[nodiscard]] std::size_t up_to(std::size_t most) { return 1 + random() % most; }
  void draw(std::size_t most) {
    states.clear(), tapes.clear();
    for (int k = 0; k <= layers; ++k) states.push_back(up_to(most)), tapes.push_back(up_to(most));
    gradient = random() % 4 == 0 ? 2 : 1;
    noise = random() % 2 == 0;
  }
  [[nodiscard]] Numbers input() { return Numbers(states[0], 0.25); }
  [[nodiscard]] Numbers forward(int layer, const Numbers& x) const {
    Numbers y(states[static_cast<std::size_t>(layer) + 1]);
    double sum = 0;
    for (const double v : x) sum += v;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = noise ? std::sin(sum + static_cast<double>(i * i)) : 0.5;
    return y;
  }
  [[nodiscard]] Numbers backward(const Numbers& x, const Numbers& tape, const Numbers& after) const {
    double sum = static_cast<double>(tape.size());
    for (const double v : x) sum += v;
    return Numbers(x.size() * gradient, sum + 0.5 * after[0]);
  }
  [[nodiscard]] Numbers plain_gradient() {
    std::vector<Numbers> all{input()};
    for (int k = 0; k < layers; ++k) all.push_back(forward(k, all.back()));
    Numbers result{1};
    for (int k = layers; k-- > 0;) result = backward(all[k], Numbers(tapes[k]), result);
    return result;
  }

  explicit Drawn(std::uint64_t seed)
      : random(seed),
        layers(static_cast<int>(up_to(14))),
        chain(
            layers,
            [this](int layer, const Numbers& x, Numbers* tape) {
              if (tape) tape->resize(tapes[static_cast<std::size_t>(layer)]);
              return forward(layer, x);
            },
            [this](int, const Numbers& x, const Numbers& tape, const Numbers& after) {
              return backward(x, tape, after);
            }) {}
};

TEST(ChainLimit, RandomSizesGiveTheRightGradientWithinTheBudgetOrAnError) {
  const TemporaryFolder folder;
  int right = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Drawn drawn(seed);
    drawn.draw(40);
    if (seed % 3 == 1) drawn.chain.codec(codec("zstd"));
    if (seed % 4 == 2) drawn.chain.disk({.folder = folder.path()});
    drawn.chain.measure(drawn.input());
    const auto budget = static_cast<Bytes>(drawn.up_to(6000) + 1500);
    drawn.chain.schedule(schedule::budget(budget, 2ms));
    for (int pass = 0; pass < 2; ++pass) {
      Bytes most = 0;
      drawn.chain.observer([&](const ChainProgress& progress) {
        const bool backward = progress.phase == ChainProgress::Phase::backward;
        const Bytes gradient = backward ? static_cast<Bytes>(drawn.states[progress.position] * drawn.gradient) * 8 : 0;
        most = std::max(most, progress.stored + gradient);
      });
      try {
        (void)drawn.chain.forward(drawn.input());
        EXPECT_EQ(drawn.chain.backward({1}), drawn.plain_gradient()) << seed;
        ++right;
      } catch (const ChainError&) {
        ++refused;
      } catch (const BadOption&) {
        ++refused;
      }
      EXPECT_LE(drawn.chain.statistics().peak_stored, budget) << seed;
      EXPECT_LE(most, budget) << seed;
      EXPECT_EQ(drawn.chain.statistics().stored, 0) << seed;
      drawn.draw(50);
    }
  }
  EXPECT_GT(right, 150);
  EXPECT_GT(refused, 5);
}

// ---- disk ----

TEST(ChainLimit, ADiskThatIsTooSmallForTheScheduleIsAnErrorWhenThePassBegins) {
  const TemporaryFolder folder;
  const Toy toy;
  int calls = 0;
  auto chain = toy.chain(200);
  chain.observer([&](const ChainProgress&) { ++calls; });
  chain.schedule(schedule::memory_and_disk({.memory_slots = 2, .disk_slots = 14, .write_cost = 0.1, .read_cost = 0.1}));
  const Numbers input = some_numbers(1000), seed = some_numbers(1000, 2);
  for (const bool coded : {false, true}) {
    if (coded) chain.codec(codec("half"));
    const Bytes state = coded ? 2000 : 8000;
    chain.disk({.folder = folder.path(), .budget = 3 * state + 6000});
    try {
      (void)chain.forward(input);
      ADD_FAILURE();
    } catch (const BadOption& error) {
      EXPECT_NE(std::string(error.what()).find("disk.budget is"), std::string::npos) << error.what();
    }
    EXPECT_EQ(calls, 0);
    chain.disk({.folder = folder.path(), .budget = 14 * (state + 32)});
    EXPECT_NO_THROW((void)chain.forward(input));
    EXPECT_NO_THROW(chain.backward(seed));
    EXPECT_LE(chain.statistics().peak_disk, 14 * (state + 32));
    calls = 0;
  }
}

TEST(ChainLimit, AStateThatFindsNoRoomOnDiskIsAnErrorAndNoOtherIsEvictedForIt) {
  const TemporaryFolder folder;
  // States grow, and no sizes say so.
  Chain<Numbers> chain(
      60, [](int layer, const Numbers&) { return Numbers(static_cast<std::size_t>(100 + 10 * layer)); },
      [](int, const Numbers&, Numbers gradient) { return gradient; });
  chain.disk({.folder = folder.path(), .budget = 14 * (800 + 32)});
  chain.schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 14, .write_cost = 0.1, .read_cost = 0.1}));
  expect_chain_error(
      [&] {
        (void)chain.forward(Numbers(100));
        chain.backward(Numbers(100));
      },
      "disk.budget is 11648 bytes");
  EXPECT_EQ(chain.store_statistics(StateTier::disk).dropped, 0u);
}

// ---- settings in the middle of a pass ----

TEST(ChainSettings, ChangedBetweenForwardAndBackwardAreThoseOfTheNextPass) {
  const TemporaryFolder folder, other;
  const Toy toy;
  const Numbers input = some_numbers(16), seed = some_numbers(16, 2);
  const auto plain = toy.plain(first_layers(60), input, seed);
  const auto change = [&](Chain<Numbers>& chain, int which) {
    if (which == 0) chain.codec(codec("int8"));
    if (which == 1) chain.disk({.folder = other.path()});
    if (which == 2) chain.disk({.folder = folder.path(), .budget = 10});
    if (which == 3) chain.enabled(false);
    if (which == 4) chain.schedule(schedule::slots(3));
    if (which == 5) chain.sizes(equal_layers(60));
  };
  for (int which = 0; which <= 5; ++which) {
    for (const bool coded : {false, true}) {
      auto chain = toy.chain(60);
      chain.disk({.folder = folder.path()});
      if (coded) chain.codec(codec("zstd"));
      chain.schedule(
          schedule::memory_and_disk({.memory_slots = 2, .disk_slots = 8, .write_cost = 0.2, .read_cost = 0.2}));
      EXPECT_EQ(chain.forward(input), plain.result);
      change(chain, which);
      EXPECT_EQ(chain.backward(seed), plain.gradient) << which;
      if (which == 2) continue;
      EXPECT_EQ(chain.forward(input), plain.result);
      const Numbers gradient = chain.backward(seed);
      EXPECT_EQ(gradient == plain.gradient, which != 0) << which;
    }
  }
}

// ---- costs ----

TEST(ChainCosts, ThatAreNoCostsAreAnErrorAtTheCallAndSpoilNothing) {
  const Toy toy;
  const Numbers input = some_numbers(8), seed = some_numbers(8, 2);
  const auto plain = toy.plain(first_layers(12), input, seed);
  auto chain = toy.chain(12);
  chain.schedule(schedule::selective(5));
  ChainLoop loop(chain);
  Numbers state = input;
  const double none[] = {-3, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  for (int k = 0; k < 12; ++k) {
    for (const double cost : none) EXPECT_THROW((void)loop.forward(state, cost), BadOption);
    state = loop.forward(state, 2);
  }
  EXPECT_EQ(state, plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  for (const double cost : none) {
    for (double ChainLayerForm::*which : {&ChainLayerForm::forward_cost, &ChainLayerForm::backward_cost}) {
      ChainForm form = equal_layers(12);
      form.layers[3].*which = cost;
      EXPECT_THROW(chain.sizes(form), BadOption);
    }
    EXPECT_THROW((void)schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 1, .write_cost = cost}), BadOption);
  }
  chain.schedule(schedule::every(3));
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(ChainCosts, GivenForOnePassDoNotReplaceThoseOfTheSizes) {
  const Toy toy;
  auto chain = toy.chain(6);
  ChainForm form = equal_layers(6);
  for (auto& layer : form.layers) layer.forward_cost = 7;
  chain.sizes(form);
  chain.schedule(schedule::selective(5));
  ChainLoop loop(chain);
  Numbers state = some_numbers(8);
  for (int k = 0; k < 6; ++k) state = loop.forward(state, 1.0);
  EXPECT_FALSE(chain.remembers(0));
  chain.backward(some_numbers(8));
  EXPECT_EQ(chain.sizes(), form);
  (void)chain.forward(some_numbers(8));
  EXPECT_TRUE(chain.remembers(0));
}

}  // namespace
}  // namespace reprise
