#include "reprise/chain/chain.h"

#include <gtest/gtest.h>

#include "chain/toy.h"
#include "reprise/simulate/simulate.h"

namespace reprise {
namespace {
// Moves only, and has nothing but bytes.
struct Field {
  explicit Field(std::vector<double> n) : numbers(std::make_unique<std::vector<double>>(std::move(n))) {}
  std::unique_ptr<std::vector<double>> numbers;
};
}  // namespace

template <>
struct StateTraits<Field> {
  static Bytes bytes(const Field& field) { return static_cast<Bytes>(field.numbers->size() * sizeof(double)); }
};

namespace {

using testing::expect_chain_error;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::Toy;

const Numbers input = some_numbers(8, 1), seed = some_numbers(8, 2);
constexpr Bytes state_bytes = 8 * sizeof(double);

// ---- all layers at once ----

TEST(Chain, GivesTheResultAndTheGradientOfThePlainRunBitForBit) {
  const Toy toy;
  for (int layers = 0; layers <= 40; ++layers) {
    const auto plain = toy.plain(first_layers(layers), input, seed);
    auto chain = toy.chain(layers);
    EXPECT_EQ(chain.forward(input), plain.result) << layers;
    EXPECT_EQ(chain.backward(seed), plain.gradient) << layers;
  }
}

TEST(Chain, SixLayersEveryThreeRememberFourStatesAndCountWhatTheyDoNotStore) {
  const Toy toy;
  auto chain = toy.chain(6);
  chain.schedule(schedule::every(3));
  (void)chain.forward(input);
  EXPECT_EQ(chain.statistics().remembered, 4u);
  EXPECT_EQ(chain.statistics().stored, 4 * state_bytes);
  EXPECT_EQ(chain.statistics().not_stored, 2 * state_bytes);
  EXPECT_TRUE(chain.remembers(2));
  EXPECT_FALSE(chain.remembers(0));
  chain.backward(seed);
  EXPECT_EQ(chain.statistics().remembered, 0u);
  EXPECT_EQ(chain.statistics().stored, 0);
  EXPECT_EQ(chain.statistics().replays, 2u);
  EXPECT_EQ(chain.statistics().forward_calls, 8u);
  EXPECT_EQ(chain.statistics().backward_calls, 6u);
}

TEST(Chain, EveryLayerRunsBackwardOnceAndForwardAsOftenAsIsCounted) {
  const Toy toy;
  auto chain = toy.chain(23);
  chain.schedule(schedule::slots(3));
  (void)chain.forward(input);
  chain.backward(seed);
  std::uint64_t forwards = 0;
  for (int k = 0; k < 23; ++k) {
    EXPECT_EQ(toy.backwards[k], 1);
    forwards += toy.forwards[k];
  }
  EXPECT_EQ(forwards, chain.statistics().forward_calls);
  EXPECT_EQ(forwards, 23 + chain.statistics().replays);
}

TEST(Chain, CanBeRunAgainAndDropsTheEarlierPass) {
  const Toy toy;
  auto chain = toy.chain(9);
  chain.schedule(schedule::every(2));
  (void)chain.forward(some_numbers(8, 7));
  const auto plain = toy.plain(first_layers(9), input, seed);
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.statistics().remembered, 5u);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
  }
  EXPECT_EQ(chain.statistics().passes, 4u);
}

TEST(Chain, UnsortedAndRepeatedLayerNumbersAreTakenInTheCallersOrder) {
  const Toy toy;
  const std::vector<int> numbers{5, 5, 0, 3, 5, 1, 1};
  const auto plain = toy.plain(numbers, input, seed);
  auto chain = toy.chain(numbers);
  chain.schedule(schedule::every(3));
  EXPECT_EQ(chain.forward(input), plain.result);
  for (Id position = 0; position < 7; ++position) {
    EXPECT_EQ(chain.recompute(position), plain.states[position + 1]) << position;
  }
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(Chain, BackwardBeforeForwardIsAnErrorThatSaysWhatIsMissing) {
  const Toy toy;
  auto chain = toy.chain(3);
  expect_chain_error([&] { chain.backward(seed); }, "forward comes first");
  (void)chain.forward(input);
  chain.backward(seed);
  expect_chain_error([&] { chain.backward(seed); }, "forward comes first");
  chain.save(1, input);
  expect_chain_error([&] { chain.backward(seed); }, "save_input()");
}

TEST(Chain, CanBeMovedAlsoInTheMiddleOfAPass) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(9), input, seed);
  std::vector<Chain<Numbers>> chains;
  for (int n = 1; n < 4; ++n) {
    Chain<Numbers> chain = toy.chain(9);
    chain.schedule(schedule::every(n));
    EXPECT_EQ(chain.forward(input), plain.result);
    chains.push_back(std::move(chain));
  }
  chains[0] = std::move(chains[2]);
  EXPECT_EQ(chains[0].statistics().remembered, 5u);
  for (const int k : {0, 1}) EXPECT_EQ(chains[k].backward(seed), plain.gradient);
}

// ---- off and on ----

TEST(Chain, SwitchedOffGivesEqualResultsWithoutAnyReplay) {
  const Toy toy;
  auto chain = toy.chain(10);
  const auto plain = toy.plain(first_layers(10), input, seed);
  for (const bool on : {true, false, true, false}) {
    chain.enabled(on);
    EXPECT_EQ(chain.enabled(), on);
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.statistics().remembered, on ? 4u : 10u);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    EXPECT_EQ(chain.statistics().replays > 0, on);
    EXPECT_EQ(chain.statistics().stored, 0);
  }
}

// ---- an unknown number of layers ----

TEST(Chain, ALoopThatStopsWhenItLikesHasTheGradientOfThePlainRun) {
  const Toy toy;
  auto chain = toy.chain(ChainLayers::unknown());
  for (const int layers : {1, 2, 3, 10, 57, 300}) {
    for (const int slots : {1, 3, 5, 1000}) {
      const auto plain = toy.plain(first_layers(layers), input, seed);
      chain.schedule(schedule::online(slots));
      const auto result =
          chain.forward_until(input, [&](Id position, const Numbers&) { return position + 1 == layers; });
      EXPECT_EQ(result, plain.result);
      EXPECT_LE(chain.statistics().remembered, static_cast<std::uint64_t>(slots));
      EXPECT_EQ(chain.backward(seed), plain.gradient);
      // Beside the slots: the state that a layer goes on from, and the one it makes.
      EXPECT_LE(chain.statistics().peak_remembered, static_cast<std::uint64_t>(slots) + 2);
      EXPECT_TRUE(simulate(chain.trace(), chain.plan()).valid());
    }
  }
}

TEST(Chain, AnUnknownNumberOfLayersNeedsAScheduleThatDecidesAsItGoes) {
  const Toy toy;
  auto chain = toy.chain(ChainLayers::unknown());
  chain.schedule(schedule::slots(3));
  EXPECT_THROW((void)chain.forward_until(input, [](Id, const Numbers&) { return true; }), ChainError);
  EXPECT_THROW((void)chain.forward(input), ChainError);
  auto known = toy.chain(3);
  EXPECT_THROW((void)known.forward_until(input, [](Id, const Numbers&) { return true; }), ChainError);
}

// ---- exceptions ----

TEST(Chain, AClosureMayThrowAtAnyCallAndTheChainCanBeRunAgain) {
  const Toy toy;
  int calls = 0, throws_at = 0;
  struct Thrown {};
  const auto count = [&] {
    if (++calls == throws_at) throw Thrown();
  };
  Chain<Numbers> chain(
      12,
      [&](int layer, const Numbers& x) {
        count();
        return toy.forward(layer, x);
      },
      [&](int layer, const Numbers& x, Numbers gradient) {
        count();
        return toy.backward(layer, x, gradient);
      });
  const auto plain = toy.plain(first_layers(12), input, seed);
  for (const auto& schedule : {schedule::every(4), schedule::slots(2), schedule::online(3)}) {
    chain.schedule(schedule);
    bool thrown = true;
    for (throws_at = 1; thrown; ++throws_at) {
      calls = 0;
      thrown = false;
      try {
        (void)chain.forward(input);
        chain.backward(seed);
      } catch (const Thrown&) {
        thrown = true;
        EXPECT_EQ(chain.statistics().stored, 0);
        EXPECT_EQ(chain.statistics().remembered, 0u);
        const int again = std::exchange(throws_at, 0);
        EXPECT_EQ(chain.forward(input), plain.result);
        EXPECT_EQ(chain.backward(seed), plain.gradient);
        throws_at = again;
      }
    }
    EXPECT_GT(throws_at, 25);
  }
}

// ---- watching ----

TEST(Chain, AnObserverSeesEveryCallWithItsLayerAndBytes) {
  const Toy toy;
  auto chain = toy.chain(std::vector<int>{3, 1, 2});
  chain.schedule(schedule::slots(1));
  std::vector<std::string> seen;
  chain.observer([&](const ChainProgress& progress) {
    seen.push_back(std::string(name(progress.phase)) + " " + std::to_string(progress.layer));
    EXPECT_GE(progress.stored, 0);
    EXPECT_LE(progress.stored, 4 * state_bytes);
  });
  (void)chain.forward(input);
  chain.backward(seed);
  EXPECT_EQ(seen, (std::vector<std::string>{"forward 3", "forward 1", "forward 2", "backward 2", "replay 3",
                                            "backward 1", "backward 3"}));
}

// ---- states by hand ----

TEST(Chain, RecomputeGivesTheStateAfterAnyLayerAlsoARememberedOne) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(10), input, seed);
  auto chain = toy.chain(10);
  chain.schedule(schedule::every(4));
  (void)chain.forward(input);
  for (Id k = 0; k < 10; ++k) {
    const std::uint64_t before = chain.statistics().replays;
    EXPECT_EQ(chain.recompute(k), plain.states[k + 1]);
    EXPECT_EQ(chain.statistics().replays - before, static_cast<std::uint64_t>(k < 8 ? (k + 1) % 4 : k - 8));
    if (chain.remembers(k)) EXPECT_EQ(chain.state(k), plain.states[k + 1]);
  }
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(Chain, AStateThatWasNeverSavedIsAnErrorAndSoIsALayerThatIsNotThere) {
  const Toy toy;
  auto chain = toy.chain(5);
  EXPECT_THROW((void)chain.state(2), ChainError);
  EXPECT_THROW((void)chain.recompute(2), ChainError);
  EXPECT_THROW((void)chain.recompute(5), ChainError);
  EXPECT_THROW((void)chain.recompute(-1), ChainError);
  EXPECT_THROW(chain.save(5, input), ChainError);
  EXPECT_THROW((void)chain.remembers(7), ChainError);
}

TEST(Chain, StatesSavedByHandAreWhatBackwardStartsFrom) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(10), input, seed);
  auto chain = toy.chain(10);
  chain.save_input(input);
  chain.save(2, plain.states[3]);
  chain.save(6, some_numbers(8, 9));
  chain.save(6, plain.states[7]);
  EXPECT_EQ(chain.statistics().stored, 3 * state_bytes);
  EXPECT_EQ(chain.statistics().remembered, 3u);
  EXPECT_EQ(chain.recompute(8), plain.states[9]);
  EXPECT_EQ(chain.statistics().replays, 2u);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_EQ(chain.statistics().stored, 0);
}

TEST(Chain, ClearResetsEverything) {
  const Toy toy;
  auto chain = toy.chain(5);
  EXPECT_EQ(chain.statistics(), ChainStatistics{});
  (void)chain.forward(input);
  chain.save(1, input);
  chain.clear();
  EXPECT_EQ(chain.statistics(), ChainStatistics{});
  EXPECT_FALSE(chain.remembers(1));
  EXPECT_THROW(chain.backward(seed), ChainError);
}

// ---- the caller's own types ----

TEST(Chain, AStateThatOnlyMovesNeedsNothingButItsBytes) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(11), input, seed);
  Chain<Field, Numbers> chain(
      11, [&](int layer, const Field& x) { return Field(toy.forward(layer, *x.numbers)); },
      [&](int layer, const Field& x, Numbers gradient) { return toy.backward(layer, *x.numbers, gradient); });
  for (const auto& schedule : {schedule::every(3), schedule::slots(2), schedule::online(3)}) {
    chain.schedule(schedule);
    EXPECT_EQ(*chain.forward(Field(input)).numbers, plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
  }
}

// ---- tapes ----

// The cosines that backward needs, so that it need not compute them.
Chain<Numbers, Numbers, Numbers> taped_chain(const Toy& toy, int layers, int* tapes) {
  return {layers,
          [&toy, tapes](int layer, const Numbers& x, Numbers* tape) {
            if (tape) {
              ++*tapes;
              tape->resize(x.size());
              for (std::size_t i = 0; i < x.size(); ++i) (*tape)[i] = std::cos(x[i] + 0.1 * layer);
            }
            return toy.forward(layer, x);
          },
          [](int, const Numbers& x, const Numbers& tape, Numbers gradient) {
            Numbers result(x.size(), 0);
            for (std::size_t i = 0; i < x.size(); ++i) {
              result[i] += gradient[i] * tape[i];
              result[(i + 1) % x.size()] += 0.5 * gradient[i];
            }
            return result;
          }};
}

TEST(Chain, TapesAreMadeOnceForEachBackwardAndCounted) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(20), input, seed);
  int tapes = 0;
  auto chain = taped_chain(toy, 20, &tapes);
  for (const auto& schedule : {schedule::everything(), schedule::every(4), schedule::every(1), schedule::slots(3),
                               schedule::slots(20), schedule::online(3), schedule::selective(4)}) {
    chain.schedule(schedule);
    tapes = 0;
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    EXPECT_EQ(tapes, 20);
    EXPECT_EQ(chain.statistics().stored, 0);
    EXPECT_TRUE(simulate(chain.trace(), chain.plan()).valid());
  }
  chain.enabled(false);
  (void)chain.forward(input);
  EXPECT_EQ(chain.statistics().stored, 40 * state_bytes);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_EQ(chain.statistics().replays, 0u);
}

// Makes the tape of the first of two layers while the state after it is still remembered.
class TapesFirst : public Schedule {
 public:
  Plan plan(const ChainForm& form) const override {
    using Kind = ChainStep::Kind;
    return plan_of_steps(form, {{Kind::store, 0},
                                {Kind::advance, 1},
                                {Kind::store, 1},
                                {Kind::advance, 2},
                                {Kind::load, 1},
                                {Kind::tape, 2},
                                {Kind::load, 0},
                                {Kind::tape, 1},
                                {Kind::backward, 2},
                                {Kind::discard, 1},
                                {Kind::backward, 1},
                                {Kind::discard, 0}});
  }
};

TEST(Chain, AStateThatIsMadeAgainForTheTapeOfItsLayerIsHeldAndCountedOnce) {
  const Toy toy;
  int tapes = 0;
  auto chain = taped_chain(toy, 2, &tapes);
  chain.schedule(std::make_shared<TapesFirst>());
  std::vector<Bytes> stored;
  chain.observer([&](const ChainProgress& progress) { stored.push_back(progress.stored / state_bytes); });
  (void)chain.forward(input);
  EXPECT_EQ(chain.backward(seed), toy.plain(first_layers(2), input, seed).gradient);
  // Two states; the same with one tape, with two; then without the state and the tape of the second layer.
  EXPECT_EQ(stored, (std::vector<Bytes>{2, 2, 3, 4, 4, 2}));
  EXPECT_EQ(chain.statistics().peak_stored, 5 * state_bytes);  // while the first layer runs again
}

}  // namespace
}  // namespace reprise
