#include "reprise/chain/loop.h"

#include <gtest/gtest.h>

#include "chain/toy.h"
#include "reprise/simulate/simulate.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::expect_chain_error;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::TemporaryFolder;
using testing::Toy;

const Numbers input = some_numbers(8, 1), seed = some_numbers(8, 2);

Numbers forward(ChainLoop<Numbers>& loop, Id layers) {
  Numbers state = input;
  for (Id k = 0; k < layers; ++k) state = loop.forward(state, 1.0);
  return state;
}

Numbers backward(ChainLoop<Numbers>& loop, Id layers) {
  Numbers gradient = seed;
  for (Id k = layers; k-- > 0;) gradient = loop.backward(gradient);
  return gradient;
}

TEST(ChainLoop, MakesTheSameCallsAsTheChainUnderEverySchedule) {
  const Toy toy;
  for (const int layers : {1, 2, 5, 17, 64}) {
    const auto plain = toy.plain(first_layers(layers), input, seed);
    auto chain = toy.chain(layers);
    ChainLoop loop(chain);
    for (const auto& schedule :
         {schedule::everything(), schedule::every(1), schedule::every(4), schedule::every(3, 2), schedule::slots(1),
          schedule::slots(3), schedule::slots(100), schedule::online(4), schedule::selective(3)}) {
      chain.schedule(schedule);
      EXPECT_EQ(forward(loop, layers), plain.result);
      EXPECT_EQ(backward(loop, layers), plain.gradient);
      const ChainStatistics of_loop = chain.statistics();
      EXPECT_EQ(of_loop.stored, 0);
      (void)chain.forward(input);
      chain.backward(seed);
      EXPECT_EQ(of_loop.replays, chain.statistics().replays);
      EXPECT_EQ(of_loop.not_stored, chain.statistics().not_stored);
    }
  }
}

TEST(ChainLoop, ForwardAloneIsFineAndAnotherLoopBeginsAnew) {
  const Toy toy;
  auto chain = toy.chain(6);
  ChainLoop abandoned(chain);
  (void)forward(abandoned, 4);
  const auto plain = toy.plain(first_layers(6), input, seed);
  ChainLoop loop(chain);
  EXPECT_EQ(forward(loop, 6), plain.result);
  expect_chain_error([&] { (void)abandoned.forward(input); }, "the pass of this loop is over");
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  expect_chain_error([&] { (void)loop.backward(seed); }, "the pass of this loop is over");
}

TEST(ChainLoop, GoesBackwardThroughAPassThatTheChainHasRunForward) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(11), input, seed);
  auto chain = toy.chain(11);
  for (int pass = 0; pass < 2; ++pass) {
    (void)chain.forward(input);
    ChainLoop loop(chain);
    EXPECT_EQ(backward(loop, 11), plain.gradient);
  }
  chain.save_input(input);
  chain.save(4, plain.states[5]);
  ChainLoop loop(chain);
  EXPECT_EQ(backward(loop, 11), plain.gradient);
}

TEST(ChainLoop, WhatIsNotNextIsAnErrorThatNamesWhatIs) {
  const Toy toy;
  auto chain = toy.chain(3);
  ChainLoop loop(chain);
  expect_chain_error([&] { (void)loop.backward(seed); }, "forward comes first");
  const Numbers first = loop.forward(input);
  expect_chain_error([&] { (void)loop.backward(seed); }, "forward is not over: layer 1 is next");
  (void)loop.forward(loop.forward(first));
  expect_chain_error([&] { (void)loop.forward(input); }, "all 3 layers have run");
  EXPECT_EQ(loop.backward(seed).size(), seed.size());
  expect_chain_error([&] { (void)loop.forward(input); }, "backward of layer 1 is next");
  (void)loop.backward(seed);
  (void)loop.backward(seed);
  expect_chain_error([&] { (void)loop.backward(seed); }, "forward comes first");
}

TEST(ChainLoop, OfNoLayersHasNothingToRun) {
  const Toy toy;
  auto chain = toy.chain(0);
  ChainLoop loop(chain);
  expect_chain_error([&] { (void)loop.forward(input); }, "there is no layer 0");
  (void)chain.forward(input);
  expect_chain_error([&] { (void)loop.backward(seed); }, "there are no layers");
}

TEST(ChainLoop, ThatThrewIsOverAndAnotherOneCanBeRun) {
  const Toy toy;
  struct Thrown {};
  bool throws = false;
  Chain<Numbers> chain(
      5,
      [&](int layer, const Numbers& x) {
        if (throws) throw Thrown();
        return toy.forward(layer, x);
      },
      [&](int layer, const Numbers& x, Numbers gradient) { return toy.backward(layer, x, gradient); });
  ChainLoop loop(chain);
  (void)forward(loop, 3);
  throws = true;
  EXPECT_THROW((void)loop.forward(input), Thrown);
  throws = false;
  EXPECT_EQ(chain.statistics().stored, 0);
  EXPECT_EQ(chain.statistics().remembered, 0u);
  expect_chain_error([&] { (void)loop.forward(input); }, "the pass of this loop is over");
  ChainLoop next(chain);
  const auto plain = toy.plain(first_layers(5), input, seed);
  EXPECT_EQ(forward(next, 5), plain.result);
  EXPECT_EQ(backward(next, 5), plain.gradient);
}

TEST(ChainLoop, MayStopWhenItLikesIfTheNumberOfLayersIsUnknown) {
  const Toy toy;
  auto chain = toy.chain(ChainLayers::unknown());
  ChainLoop loop(chain);
  for (const bool on : {true, false}) {
    chain.enabled(on);
    for (const int layers : {1, 12, 100}) {
      const auto plain = toy.plain(first_layers(layers), input, seed);
      EXPECT_EQ(forward(loop, layers), plain.result);
      EXPECT_EQ(backward(loop, layers), plain.gradient);
      EXPECT_TRUE(simulate(chain.trace(), chain.plan()).valid());
      if (!on) EXPECT_EQ(chain.statistics().replays, 0u);
    }
  }
  chain.enabled(true);
  chain.schedule(schedule::slots(3));
  expect_chain_error([&] { (void)loop.forward(input); }, "needs to know the number of layers");
}

TEST(ChainLoop, MayHaveStatesOnDisk) {
  const TemporaryFolder folder;
  const Toy toy;
  auto chain = toy.chain(40);
  chain.disk({.folder = folder.path()});
  chain.schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 6, .write_cost = 1, .read_cost = 1}));
  const auto plain = toy.plain(first_layers(40), input, seed);
  ChainLoop loop(chain);
  EXPECT_EQ(forward(loop, 40), plain.result);
  EXPECT_EQ(backward(loop, 40), plain.gradient);
}

// Counts how often it is cloned; it cannot be copied.
struct Counted {
  explicit Counted(Numbers n) : numbers(std::move(n)) {}
  Counted(Counted&&) = default;
  Counted& operator=(Counted&&) = default;
  Numbers numbers;
  static inline int clones = 0;
};

}  // namespace

template <>
struct StateTraits<Counted> {
  static Bytes bytes(const Counted& state) { return static_cast<Bytes>(state.numbers.size() * sizeof(double)); }
  static Counted clone(const Counted& state) {
    ++Counted::clones;
    return Counted(state.numbers);
  }
};

namespace {

TEST(ChainLoop, ClonesTheStatesThatAreRememberedAndNoOthers) {
  const Toy toy;
  Chain<Counted, Numbers> chain(
      12, [&](int layer, const Counted& x) { return Counted(toy.forward(layer, x.numbers)); },
      [&](int layer, const Counted& x, Numbers gradient) { return toy.backward(layer, x.numbers, gradient); });
  chain.schedule(schedule::every(4));
  ChainLoop loop(chain);
  Counted state(input);
  for (int k = 0; k < 12; ++k) state = loop.forward(state);
  EXPECT_EQ(Counted::clones, 6);
  Numbers gradient = seed;
  for (int k = 0; k < 12; ++k) gradient = loop.backward(std::move(gradient));
  EXPECT_EQ(Counted::clones, 6);
  EXPECT_EQ(gradient, toy.plain(first_layers(12), input, seed).gradient);
}

}  // namespace
}  // namespace reprise
