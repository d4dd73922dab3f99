// What a store says about itself: why a value is not there, what it was made with, its numbers as text; and moving it.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "reprise/store/store.h"
#include "store/store_support.h"

namespace reprise {
namespace {

using testing::expect_contains;
using testing::message_of;
using testing::numbers;
using testing::on_disk;
using testing::store_folders;
using testing::TemporaryFolder;
using testing::tens;
using testing::with_both_tiers;
using testing::with_memory;

TEST(Store, RemembersEveryNthByItsKeyOrByTheOrderOfThePuts) {
  Store by_key({.remember = remember::every_key(2)}), by_order({.remember = remember::every(2)});
  std::vector<int> kept_by_key, kept_by_order;
  for (const int id : {1, 2, -4, 4, 5, -7}) {
    if (by_key.put(id, numbers(1)) == PutResult::stored) kept_by_key.push_back(id);
    if (by_order.put(id, numbers(1)) == PutResult::stored) kept_by_order.push_back(id);
  }
  EXPECT_EQ(kept_by_key, (std::vector{2, -4, 4}));
  EXPECT_EQ(kept_by_order, (std::vector{1, -4, 5}));
  EXPECT_THROW((void)remember::every_key(0), BadOption);
  expect_contains(message_of<BadOption>([&] { by_key.put("layer 2", numbers(1)); }), "\"layer 2\"");
  EXPECT_THROW(by_key.put("-", numbers(1)), BadOption);
}

TEST(Store, SaysWhyAValueThatWasOfferedIsNotThere) {
  Store store({.memory = 50, .remember = remember::costly(100), .evict = Evict::nothing});
  const auto said = [&](const Key& key) { return message_of<NotStored>([&] { (void)store.get(key); }); };
  store.put("cheap", numbers(1), 3);
  expect_contains(said("cheap"), "was offered and not remembered, because the store's rule");
  expect_contains(said("cheap"), "cost 3");
  EXPECT_EQ(message_of<NotStored>([&] { (void)store.take("cheap"); }), said("cheap"));
  EXPECT_EQ(said("never"), "[store] no value \"never\"");
  store.put("first", numbers(10), 100);
  store.put("second", numbers(10), 100);
  expect_contains(said("second"), "there was no room");
  store.enabled(false);
  store.put("off", numbers(1), 100);
  expect_contains(said("off"), "switched off");
  store.enabled(true);
  store.put("off", numbers(1), 100);
  (void)store.take("off");
  EXPECT_EQ(said("off"), "[store] no value \"off\"");

  Store small(with_memory(tens(1)));
  small.put("old", numbers(10));
  small.put("new", numbers(10));
  expect_contains(message_of<NotStored>([&] { (void)small.get("old"); }), "evicted, because others needed its room");
}

TEST(Store, RemembersTheReasonsOfTheLastKeysOnly) {
  Store store({.remember = remember::none()});
  for (int k = 0; k < 5000; ++k) store.put(k, numbers(1));
  expect_contains(message_of<NotStored>([&] { (void)store.get(4999); }), "offered");
  EXPECT_EQ(message_of<NotStored>([&] { (void)store.get(0); }), "[store] no value \"0\"");
}

TEST(Store, CanBeMovedWithItsValuesAndKeptInAVector) {
  const TemporaryFolder folder;
  std::vector<Store> stores;
  for (int k = 0; k < 4; ++k) {
    Store store(with_both_tiers(folder, tens(2)));
    for (int i = 0; i < 3; ++i) store.put(i, numbers(10, 10 * k + i));
    stores.push_back(std::move(store));
  }
  stores[0] = std::move(stores[3]);
  stores.pop_back();
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(stores[k].get(i).to_vector<float>(), numbers(10, 10 * (k == 0 ? 3 : k) + i));
    }
    EXPECT_TRUE(on_disk(stores[k], 0));
  }
  EXPECT_EQ(store_folders(folder.path()).size(), 3u);
}

TEST(Store, TellsWhatItWasMadeWithAndPrintsItsNumbers) {
  Store store({.memory = 1000, .evict = Evict::cheapest, .codec = &codec("half")});
  EXPECT_EQ(store.options().memory, 1000);
  EXPECT_EQ(store.options().evict, Evict::cheapest);
  EXPECT_EQ(store.options().codec, &codec("half"));
  store.remember(remember::none());
  const std::string key = "a";
  EXPECT_FALSE(store.options().remember({key, 0, 4, 1000}));
  store.remember(remember::all());
  store.put("a", ArrayView(numbers(6), {2, 3}), 2.5);
  std::ostringstream text;
  text << store.statistics();
  expect_contains(text.str(), "stored ever      1\n");
  expect_contains(text.str(), "bytes            12\n");
  std::ostringstream description;
  description << store.describe("a");
  EXPECT_EQ(description.str(), "put 0: float32 of [2, 3] (24 bytes, 12 as half), cost 2.5, in memory");
}

}  // namespace
}  // namespace reprise
