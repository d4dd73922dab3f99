// The kinds of closures: by value, in place, into a state; and the memory that they use again.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "chain/toy.h"
#include "reprise/chain/loop.h"

namespace reprise {
namespace {

using testing::expect_chain_error;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::Toy;

const Numbers input = some_numbers(64, 1), seed = some_numbers(64, 2);
constexpr int layers = 40;

// A state that counts how often memory is allocated for one.
struct Counted {
  static inline int allocations = 0, copies = 0;
  Numbers numbers;
  explicit Counted(Numbers n) : numbers(std::move(n)) { ++allocations; }
  Counted(Counted&&) = default;
  Counted& operator=(Counted&&) = default;
};

}  // namespace

template <>
struct StateTraits<Counted> {
  static Bytes bytes(const Counted& state) { return static_cast<Bytes>(state.numbers.size() * sizeof(double)); }
  static Counted clone(const Counted& state) { return Counted(state.numbers); }
  static void copy(const Counted& from, Counted& to) {
    to.numbers = from.numbers;
    ++Counted::copies;
  }
};

namespace {

Numbers backward(const Toy& toy, int layer, const Counted& x, const Numbers& gradient) {
  return toy.backward(layer, x.numbers, gradient);
}

Chain<Counted, Numbers> in_place(const Toy& toy) {
  return {layers, [&](int layer, Counted& x) { x.numbers = toy.forward(layer, x.numbers); },
          [&](int layer, const Counted& x, const Numbers& g) { return backward(toy, layer, x, g); }};
}
Chain<Counted, Numbers> into(const Toy& toy) {
  return {layers, [&](int layer, const Counted& x, Counted& y) { y.numbers = toy.forward(layer, x.numbers); },
          [&](int layer, const Counted& x, const Numbers& g) { return backward(toy, layer, x, g); }};
}

TEST(ChainClosures, InPlaceAndIntoAStateGiveTheSameBitsAsByValue) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  for (auto make : {in_place, into}) {
    auto chain = make(toy);
    for (const auto& schedule : {schedule::everything(), schedule::every(7), schedule::slots(1), schedule::slots(4),
                                 schedule::online(3), schedule::after({3, 20})}) {
      chain.schedule(schedule);
      for (int pass = 0; pass < 2; ++pass) {
        EXPECT_EQ(chain.forward(Counted(input)).numbers, plain.result) << schedule->text();
        const std::uint64_t calls = chain.statistics().forward_calls;
        EXPECT_EQ(calls, static_cast<std::uint64_t>(layers));
        EXPECT_EQ(chain.recompute(6).numbers, plain.states[7]);
        EXPECT_EQ(chain.backward(seed), plain.gradient) << schedule->text();
        EXPECT_EQ(chain.statistics().stored, 0);
        EXPECT_EQ(chain.statistics().remembered, 0u);
      }
    }
  }
}

TEST(ChainClosures, AfterTheFirstPassNoStateIsAllocated) {
  const Toy toy;
  for (auto make : {in_place, into}) {
    auto chain = make(toy);
    for (const auto& schedule : {schedule::every(7), schedule::slots(4)}) {
      chain.schedule(schedule);
      for (int pass = 0; pass < 3; ++pass) {
        Counted state(input);
        Counted::allocations = 0;
        Counted result = chain.forward(std::move(state));
        chain.backward(seed);
        if (pass > 0) EXPECT_EQ(Counted::allocations, 0) << schedule->text();
        chain.give_back(std::move(result));
      }
    }
    EXPECT_GT(chain.statistics().spare, 0);
    chain.clear();
    EXPECT_EQ(chain.statistics().spare, 0);
  }
}

TEST(ChainClosures, InPlaceAStateIsCopiedOnlyIfItIsNeededAfterwards) {
  const Toy toy;
  auto chain = in_place(toy);
  chain.schedule(schedule::slots(1));
  Counted::copies = Counted::allocations = 0;
  Counted state(input);
  (void)chain.forward(std::move(state));
  EXPECT_EQ(Counted::allocations, 3) << "the input and the state before the last layer, which are needed, and one more";
  EXPECT_EQ(chain.statistics().peak_stored, 2 * 64 * static_cast<Bytes>(sizeof(double)));
  EXPECT_EQ(chain.statistics().not_stored, (layers - 2) * 64 * static_cast<Bytes>(sizeof(double)));
}

TEST(ChainClosures, InPlaceWithTapesAndInACallersLoop) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(12), input, seed);
  Chain<Numbers, Numbers, Numbers> chain(
      12,
      [&](int layer, Numbers& x, Numbers* tape) {
        if (tape) *tape = x;
        x = toy.forward(layer, x);
      },
      [&](int layer, const Numbers&, const Numbers& tape, Numbers gradient) {
        return toy.backward(layer, tape, gradient);
      });
  for (const auto& schedule : {schedule::every(5), schedule::slots(3)}) {
    chain.schedule(schedule);
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    ChainLoop loop(chain);
    Numbers x = input, gradient = seed;
    for (int k = 0; k < 12; ++k) x = loop.forward(x);
    EXPECT_EQ(x, plain.result);
    for (int k = 0; k < 12; ++k) gradient = loop.backward(gradient);
    EXPECT_EQ(gradient, plain.gradient);
  }
}

TEST(ChainClosures, UnderABudgetThereAreNoSpares) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(layers), input, seed);
  auto chain = in_place(toy);
  chain.measure(Counted(input));
  chain.schedule(schedule::budget(8 * 64 * 8, std::chrono::milliseconds(100)));
  EXPECT_EQ(chain.forward(Counted(input)).numbers, plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_EQ(chain.statistics().spare, 0);
  EXPECT_LE(chain.statistics().peak_stored, 8 * 64 * 8);
}

TEST(ChainClosures, ThatAreMissingAreNamedErrors) {
  EXPECT_THROW(Chain<Numbers>(3, std::function<Numbers(int, const Numbers&)>(), nullptr), BadOption);
  const Toy toy;
  Chain<Numbers> chain(
      3, [&](int layer, const Numbers& x) { return toy.forward(layer, x); }, nullptr);
  EXPECT_EQ(chain.forward(input).size(), input.size());
  expect_chain_error([&] { (void)chain.backward(seed); }, "without a backward closure");
}

}  // namespace
}  // namespace reprise
