// States saved by hand: coded, on disk, within a maximum.
#include <gtest/gtest.h>

#include <cmath>

#include "chain/toy.h"
#include "support/temporary_folder.h"

namespace reprise::by_hand_test {
namespace {

using testing::expect_chain_error;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::TemporaryFolder;
using testing::Toy;

const Numbers input = some_numbers(1000, 1), seed = some_numbers(1000, 2);

TEST(ChainByHand, StatesAreCodedAsTheScheduleOnesAre) {
  const Toy toy;
  auto chain = toy.chain(5);
  chain.codec(codec("half"));
  chain.save(2, input);
  EXPECT_EQ(chain.statistics().stored, 2000);
  EXPECT_EQ(chain.statistics().remembered, 1u);
  const Numbers back = chain.state(2);
  EXPECT_NE(back, input);
  for (std::size_t k = 0; k < 1000; ++k) EXPECT_NEAR(back[k], input[k], 1e-3);
  chain.save(2, seed);
  EXPECT_EQ(chain.statistics().stored, 2000);
  chain.clear();
  EXPECT_EQ(chain.statistics().stored, 0);
}

TEST(ChainByHand, BackwardGoesFromStatesInAnyPlace) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(12), input, seed);
  for (const bool coded : {false, true}) {
    for (const bool disk : {false, true}) {
      auto chain = toy.chain(12);
      if (coded) chain.codec(codec("zstd"));
      chain.disk({.folder = folder.path()});
      chain.by_hand({.on_disk = disk});
      chain.save_input(plain.states[0]);
      chain.save(3, plain.states[4]);
      chain.save(8, plain.states[9]);
      EXPECT_EQ(chain.state(8), plain.states[9]);
      EXPECT_EQ(chain.recompute(5), plain.states[6]);
      if (disk) EXPECT_GT(chain.store_statistics(StateTier::disk).stored_ever, 0u);
      EXPECT_EQ(chain.backward(seed), plain.gradient) << coded << disk;
      EXPECT_EQ(chain.statistics().stored, 0);
    }
  }
}

TEST(ChainByHand, SettingsMayChangeBetweenTwoStates) {
  const TemporaryFolder folder;
  const Toy toy;
  const auto plain = toy.plain(first_layers(9), input, seed);
  auto chain = toy.chain(9);
  chain.disk({.folder = folder.path()});
  chain.save_input(plain.states[0]);
  chain.by_hand({.on_disk = true});
  chain.save(2, plain.states[3]);
  chain.save(5, plain.states[6]);
  chain.by_hand({});
  chain.save(5, plain.states[6]);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(ChainByHand, MoreThanTheMaximumIsAnErrorAndOverwritingIsNot) {
  const Toy toy;
  auto chain = toy.chain(5);
  chain.by_hand({.maximum = 2});
  chain.save(0, input);
  chain.save(1, input);
  expect_chain_error([&] { chain.save(2, input); }, "by_hand().maximum is 2");
  EXPECT_FALSE(chain.remembers(2));
  EXPECT_EQ(chain.statistics().stored, 16000);
  chain.save(1, seed);
  EXPECT_EQ(chain.state(1), seed);
}

TEST(ChainByHand, ADiskThatIsNotThereIsAnError) {
  const Toy toy;
  auto chain = toy.chain(5);
  chain.by_hand({.on_disk = true});
  expect_chain_error([&] { chain.save(2, input); }, "call disk() first");
}

TEST(ChainByHand, SavedInThePassOfASchedule) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(9), input, seed);
  auto chain = toy.chain(9);
  chain.codec(codec("exact"));
  chain.schedule(schedule::every(4));
  (void)chain.forward(input);
  chain.save(3, seed);  // besides the one of the schedule
  chain.save(6, seed);
  EXPECT_EQ(chain.state(3), plain.states[4]) << "the schedule's comes first";
  EXPECT_EQ(chain.state(6), seed);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

}  // namespace
}  // namespace reprise::by_hand_test
