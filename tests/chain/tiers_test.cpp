// Chains whose states are coded, or on a disk.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>

#include "chain/toy.h"
#include "reprise/simulate/simulate.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace reprise::tiers_test {
namespace {

using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::TemporaryFolder;
using testing::Toy;

const Numbers input = some_numbers(16, 1), seed = some_numbers(16, 2);
constexpr Bytes state_bytes = 16 * sizeof(double);

std::size_t files_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) count += entry.is_regular_file();
  return count;
}

std::vector<SchedulePointer> schedules() {
  return {schedule::everything(), schedule::every(1),  schedule::every(3),    schedule::slots(1),
          schedule::slots(4),     schedule::online(3), schedule::selective(2)};
}

TEST(ChainCodec, ExactAndZstdGiveTheGradientOfThePlainRunBitForBit) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(20), input, seed);
  auto chain = toy.chain(20);
  for (const char* name : {"exact", "zstd"}) {
    chain.codec(codec(name));
    for (const auto& schedule : schedules()) {
      chain.schedule(schedule);
      EXPECT_EQ(chain.forward(input), plain.result);
      EXPECT_EQ(chain.backward(seed), plain.gradient);
      EXPECT_EQ(chain.statistics().stored, 0);
      EXPECT_TRUE(simulate(chain.trace(), chain.plan()).valid());
    }
  }
}

TEST(ChainCodec, HalfPrecisionStoresAQuarterOfTheBytesOfDoublesAndLeavesForwardExact) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(20), input, seed);
  auto chain = toy.chain(20);
  chain.codec(codec("half"));
  chain.schedule(schedule::every(5));
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.statistics().remembered, 8u);
  EXPECT_EQ(chain.statistics().stored, 8 * state_bytes / 4);
  EXPECT_EQ(chain.statistics().not_stored, 12 * state_bytes);
  const Numbers gradient = chain.backward(seed);
  EXPECT_NE(gradient, plain.gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(gradient[i], plain.gradient[i], 0.05);
}

TEST(ChainCodec, WhatBackwardSeesIsTheDecodedState) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(6), input, seed);
  auto chain = toy.chain(6);
  chain.codec(codec("bfloat16"));
  chain.schedule(schedule::every(2));
  (void)chain.forward(input);
  const Numbers after_two = chain.state(1);
  EXPECT_NE(after_two, plain.states[2]);
  for (std::size_t i = 0; i < after_two.size(); ++i) {
    EXPECT_LE(std::abs(after_two[i] - plain.states[2][i]), std::abs(plain.states[2][i]) / 256);
  }
  EXPECT_EQ(chain.recompute(2), toy.forward(2, after_two));
}

TEST(ChainCodec, SwitchedOffNothingIsCoded) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(9), input, seed);
  auto chain = toy.chain(9);
  chain.codec(codec("int8"));
  chain.enabled(false);
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  chain.enabled(true);
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_NE(chain.backward(seed), plain.gradient);
}

TEST(ChainCodec, AnUnknownNumberOfLayersMayBeCodedToo) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(57), input, seed);
  auto chain = toy.chain(ChainLayers::unknown());
  chain.codec(codec("exact"));
  chain.schedule(schedule::online(4));
  EXPECT_EQ(chain.forward_until(input, [](Id position, const Numbers&) { return position == 56; }), plain.result);
  EXPECT_LE(chain.statistics().stored, 4 * state_bytes);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_TRUE(simulate(chain.trace(), chain.plan()).valid());
}

TEST(ChainCodec, ABudgetUsesTheCodecWhereThatIsCheaper) {
  const Toy toy;
  auto chain = toy.chain(12);
  chain.codec(codec("half"));
  chain.measure(input);
  ChainForm form = chain.sizes();
  ASSERT_TRUE(form.packed.has_value());
  EXPECT_EQ(form.tiers[*form.packed].entries[3].bytes, state_bytes / 4);
  EXPECT_GT(form.tiers[*form.packed].entries[3].put_cost, 0);
  chain.schedule(schedule::budget(12 * state_bytes, std::chrono::milliseconds(300)));
  const auto plain = toy.plain(first_layers(12), input, seed);
  EXPECT_EQ(chain.forward(input), plain.result);
  (void)chain.backward(seed);
  EXPECT_LE(chain.statistics().peak_stored, 12 * state_bytes);
}

// ---- disk ----

TEST(ChainDisk, MemoryAndDiskTogetherGiveTheGradientOfThePlainRunBitForBit) {
  const TemporaryFolder folder;
  const Toy toy;
  auto chain = toy.chain(100);
  chain.disk({.folder = folder.path()});
  const auto plain = toy.plain(first_layers(100), input, seed);
  for (const auto& [memory, disk] : {std::pair{2, 5}, {1, 20}, {0, 3}, {5, 100}, {3, 0}}) {
    chain.schedule(
        schedule::memory_and_disk({.memory_slots = memory, .disk_slots = disk, .write_cost = 0.5, .read_cost = 0.5}));
    EXPECT_EQ(chain.forward(input), plain.result);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    EXPECT_EQ(chain.statistics().stored, 0);
    EXPECT_EQ(chain.statistics().disk, 0);
    EXPECT_EQ(chain.statistics().peak_remembered <= static_cast<std::uint64_t>(memory + disk + 2), true);
    EXPECT_EQ(files_in(folder.path()) <= 1, true);  // the store's lock
  }
}

// To code a small state takes much more than the state itself.
TEST(ChainDisk, StatesOfEverySizeAreCodedAlsoIfTheyAreKept) {
  const auto copy = [](int, const Numbers& x) { return x; };
  const auto pass_on = [](int, const Numbers&, Numbers gradient) { return gradient; };
  for (const bool keep : {false, true}) {
    for (const std::size_t size : {16, 100, 1'000, 10'000, 100'000}) {
      const TemporaryFolder folder;
      Chain<Numbers> chain(30, copy, pass_on);
      chain.codec(codec("zstd"));
      chain.schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 8, .write_cost = 0, .read_cost = 0}));
      chain.disk({.folder = folder.path(), .keep = keep});
      EXPECT_EQ(chain.forward(Numbers(size, 0)), Numbers(size, 0));
      const StoreStatistics statistics = chain.store_statistics(StateTier::disk);
      EXPECT_GT(statistics.stored_ever, 1u);
      EXPECT_EQ(statistics.kept_exactly, 0u) << size << (keep ? " numbers, kept" : " numbers");
      EXPECT_EQ(chain.backward(Numbers(1)), Numbers(1));
    }
  }
}

TEST(ChainDisk, AStateOnDiskIsRememberedAndCanBeAskedFor) {
  const TemporaryFolder folder;
  const Toy toy;
  auto chain = toy.chain(30);
  chain.disk({.folder = folder.path()});
  chain.schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 30, .write_cost = 0, .read_cost = 0}));
  const auto plain = toy.plain(first_layers(30), input, seed);
  (void)chain.forward(input);
  int remembered = 0;
  for (Id k = 0; k < 30; ++k) {
    if (!chain.remembers(k)) continue;
    ++remembered;
    EXPECT_EQ(chain.state(k), plain.states[k + 1]);
  }
  EXPECT_GT(remembered, 5);
  EXPECT_EQ(chain.recompute(29), plain.states[30]);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(ChainDisk, AChildOfAForkGoesOnWithItsCopyAndItsParentWithItsOwn) {
  const TemporaryFolder folder;
  const Toy toy;
  std::unique_ptr<Chain<Numbers>> chain(new Chain<Numbers>(toy.chain(30)));
  chain->disk({.folder = folder.path()});
  chain->schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 8, .write_cost = 0, .read_cost = 0}));
  const auto plain = toy.plain(first_layers(30), input, seed);
  (void)chain->forward(input);
  // The next two states are read ahead, and their files go. A fork just then leaves the child without either, which is
  // an error with the file's name; so that is over first.
  const auto moved = [&] { return chain->store_statistics(StateTier::disk).moves_to_memory; };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (moved() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  const auto all_of_it = [&] {
    if (chain->backward(seed) != plain.gradient) return 1;
    (void)chain->forward(input);
    return chain->backward(seed) == plain.gradient ? 0 : 2;
  };
  const int code = testing::in_child([&] {
    const int result = all_of_it();
    chain.reset();
    return result;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(all_of_it(), 0);
}

TEST(ChainDisk, AFolderThatIsNotThereIsANamedErrorAndTheChainCanBeRunAgain) {
  const TemporaryFolder folder;
  const Toy toy;
  auto chain = toy.chain(20);
  chain.disk({.folder = folder / "missing"});
  chain.schedule(schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 4, .write_cost = 0, .read_cost = 0}));
  try {
    (void)chain.forward(input);
    ADD_FAILURE();
  } catch (const DiskError& error) {
    EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos) << error.what();
  }
  EXPECT_EQ(chain.statistics().remembered, 0u);
  std::filesystem::create_directory(folder / "missing");
  const auto plain = toy.plain(first_layers(20), input, seed);
  (void)chain.forward(input);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

}  // namespace
}  // namespace reprise::tiers_test
