// Closures that do not give the same result every time are errors with the layer, and not wrong gradients.
#include <gtest/gtest.h>

#include "chain/toy.h"
#include "reprise/chain/loop.h"

namespace reprise::verification_test {
namespace {

using testing::expect_chain_error;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::Toy;

const Numbers input = some_numbers(8, 1), seed = some_numbers(8, 2);

// Layer 5 adds something else every time from its call number `from` on.
Chain<Numbers> unsteady(const Toy& toy, int& calls, int from = 0) {
  return {12,
          [&, from](int layer, const Numbers& x) {
            Numbers y = toy.forward(layer, x);
            if (layer == 5 && calls++ >= from) y[3] += 1e-15 * calls;
            return y;
          },
          [&](int layer, const Numbers& x, Numbers gradient) { return toy.backward(layer, x, gradient); }};
}

TEST(ChainVerify, AClosureWithRandomNumbersIsAnErrorWithTheLayer) {
  for (const auto& schedule : {schedule::every(4), schedule::slots(2), schedule::online(2)}) {
    const Toy toy;
    int calls = 0;
    auto chain = unsteady(toy, calls);
    chain.schedule(schedule);
    (void)chain.forward(input);
    expect_chain_error([&] { chain.backward(seed); }, "layer 5 made another state when it was run again");
    EXPECT_EQ(chain.statistics().stored, 0) << "and everything was released";
  }
}

TEST(ChainVerify, NeverIsSilentAndTheFirstTimeIsTheFirstPassOfASchedule) {
  const Toy toy;
  int calls = 0;
  auto chain = unsteady(toy, calls);
  chain.verify(Verify::never);
  (void)chain.forward(input);
  chain.backward(seed);

  // From the second pass on it is not the same any more.
  calls = 0;
  auto later = unsteady(toy, calls, 2);
  later.schedule(schedule::every(8));
  (void)later.forward(input);
  later.backward(seed);
  (void)later.forward(input);
  later.backward(seed);
  later.verify(Verify::always);
  (void)later.forward(input);
  expect_chain_error([&] { later.backward(seed); }, "layer 5");
  later.verify(Verify::first_time);
  later.schedule(schedule::slots(1));  // replays others
  (void)later.forward(input);
  expect_chain_error([&] { later.backward(seed); }, "layer 5");
}

TEST(ChainVerify, RecomputingIsComparedToo) {
  const Toy toy;
  int calls = 0;
  auto chain = unsteady(toy, calls);
  chain.schedule(schedule::slots(1));
  (void)chain.forward(input);
  EXPECT_EQ(chain.recompute(4).size(), input.size());
  expect_chain_error([&] { (void)chain.recompute(6); }, "layer 5");
}

TEST(ChainVerify, WhatIsCodedWithLossIsNotCompared) {
  const Toy toy;
  auto chain = toy.chain(12);
  chain.codec(codec("half"));
  chain.verify(Verify::always);
  (void)chain.forward(input);
  EXPECT_EQ(chain.backward(seed).size(), seed.size());
}

TEST(ChainVerify, OfStatesWithPaddingOnlyIfAsked) {
  struct Padded {
    char tag = 0;
    double number = 0;
  };
  Chain<Padded> chain(
      3, [](int, const Padded& x) { return x; }, [](int, const Padded&, Padded g) { return g; });
  EXPECT_EQ(chain.verify(), Verify::never);
  chain.verify(Verify::first_time);
  EXPECT_EQ(chain.verify(), Verify::first_time);
}

TEST(ChainVerify, AnUnknownNumberOfLayersAndACallersLoopAreComparedToo) {
  const Toy toy;
  int calls = 0;
  Chain<Numbers> chain(
      ChainLayers::unknown(),
      [&](int layer, const Numbers& x) {
        Numbers y = toy.forward(layer, x);
        if (layer == 5) y[0] += calls++;
        return y;
      },
      [&](int layer, const Numbers& x, Numbers gradient) { return toy.backward(layer, x, gradient); });
  chain.schedule(schedule::online(1));
  (void)chain.forward_until(input, [](Id position, const Numbers&) { return position == 9; });
  expect_chain_error([&] { chain.backward(seed); }, "layer 5");
  ChainLoop loop(chain);
  Numbers x = input;
  for (int k = 0; k < 9; ++k) x = loop.forward(x);
  expect_chain_error(
      [&] {
        for (int k = 0; k < 9; ++k) x = loop.backward(x);
      },
      "layer 5");
}

}  // namespace
}  // namespace reprise::verification_test
