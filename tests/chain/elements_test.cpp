// Types of states and elements that need no traits by hand.
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <span>
#include <vector>

#include "chain/toy.h"
#include "reprise/store/store.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::TemporaryFolder;

struct Water {
  double height = 1, speed = 0;
  int time = 0;
  bool operator==(const Water&) const = default;
};

// Through memory, a codec and a disk, with every state made by adding one to something.
template <class State, class Step>
void goes_through(const State& input, const Step& step) {
  const TemporaryFolder folder;
  State expected = input;
  for (int k = 0; k < 9; ++k) expected = step(expected);
  Chain<State, int> chain(
      9, [&](int, const State& x) { return step(x); }, [](int, const State&, int calls) { return calls + 1; });
  chain.schedule(schedule::slots(2));
  EXPECT_EQ(chain.forward(input), expected);
  EXPECT_EQ(chain.backward(0), 9);
  chain.codec(codec("zstd"));
  EXPECT_EQ(chain.forward(input), expected);
  EXPECT_EQ(chain.backward(0), 9);
  chain.disk({.folder = folder.path(), .keep = true});
  chain.schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 2}));
  EXPECT_EQ(chain.forward(input), expected);
  EXPECT_EQ(chain.backward(0), 9);
  EXPECT_TRUE(chain.resume());
  EXPECT_EQ(chain.forward(input), expected);
  EXPECT_EQ(chain.backward(0), 9);
}

TEST(ChainElements, NumbersStructsAndArraysOfThemAreStates) {
  goes_through(2.5, [](double x) { return x + 1; });
  goes_through(std::array<double, 3>{1, 2, 3}, [](auto x) {
    x[1] += 1;
    return x;
  });
  goes_through(Water{}, [](Water w) {
    w.height += 1;
    ++w.time;
    return w;
  });
  goes_through(std::vector<Water>(5), [](auto w) {
    ++w[2].time;
    return w;
  });
  goes_through(std::vector<std::complex<double>>(4), [](auto x) {
    x[0] += std::complex(0.0, 1.0);
    return x;
  });
  goes_through(std::vector<bool>(11), [](auto x) {
    x[3] = !x[3];
    return x;
  });
#ifdef __FLT16_MAX__
  goes_through(std::vector<_Float16>(4), [](auto x) {
    x[0] = static_cast<_Float16>(x[0] + 1);
    return x;
  });
#endif
}

TEST(StoreElements, RangesOfAnyElementComeBack) {
  Store store;
  const bool flags[] = {true, false, true};
  std::array<std::complex<float>, 2> complex{{{1, 2}, {3, 4}}};
  std::vector<float> numbers{1, 2, 3, 4};
  const std::vector<Water> water(3, Water{.height = 7});
  store.put("flags", flags);
  store.put("complex", complex);
  store.put("part", std::span<float>(numbers).subspan(1, 2));
  store.put("shaped", ArrayView(std::span<float>(numbers), {2, 2}));
  store.put("water", water);
  store.put("bits", array_of({true, true, false}));
  EXPECT_EQ(store.describe("flags").element, Element::boolean);
  EXPECT_EQ(store.get("flags").as<bool>()[2], true);
  EXPECT_EQ(store.get("complex").as<std::complex<float>>()[1], complex[1]);
  EXPECT_EQ(store.get("part").to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(store.get("shaped").shape(), (Shape{2, 2}));
  EXPECT_EQ(store.get("water").to_vector<Water>(), water);
  EXPECT_EQ(store.get("bits").as<bool>()[1], true);
  EXPECT_THROW((void)store.get("part").as<Water>(), BadOption);
  EXPECT_THROW((void)store.get("water").as<float>(), BadOption);
  // What rounds leaves them alone, and masks of bool are bits.
  store.put("half", complex, PutOptions{.codec = &codec("half")});
  EXPECT_EQ(store.describe("half").codec, "exact");
  const std::array<bool, 800> mask{true};
  store.put("mask", mask, PutOptions{.codec = &codec("bits")});
  EXPECT_LT(store.describe("mask").bytes, 200);
  EXPECT_TRUE(store.get("mask").as<bool>()[0]);
}

static_assert(!Countable<double*> && !Countable<std::span<double>> && !Countable<std::string_view>);

}  // namespace
}  // namespace reprise
