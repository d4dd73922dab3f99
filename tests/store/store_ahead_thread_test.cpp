// What a store does ahead of time, on a thread of its own.
#include <gtest/gtest.h>

#include "reprise/store/store.h"
#include "store/store_support.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::files_of_ten;
using testing::in_memory;
using testing::keys;
using testing::numbers;
using testing::on_disk;
using testing::TemporaryFolder;
using testing::tens;
using testing::with_both_tiers;

TEST(StoreAhead, PrefetchesInOrderWithoutGivingUpAnything) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(3)));
  for (int i = 0; i < 6; ++i) store.put(i, numbers(10, i));
  store.erase(4);
  store.erase(5);
  store.prefetch(keys({2, "not there", 3, 0, 1}));  // 3 is in memory
  store.wait();
  EXPECT_TRUE(in_memory(store, 2));
  EXPECT_TRUE(in_memory(store, 0));
  EXPECT_TRUE(on_disk(store, 1));
  EXPECT_EQ(store.bytes(TierKind::disk), files_of_ten(1));
  EXPECT_EQ(store.statistics().moves_to_memory, 2u);
  store.erase(3);  // room comes free
  store.wait();
  EXPECT_TRUE(in_memory(store, 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store.get(i).to_vector<float>(), numbers(10, i));
}

TEST(StoreAhead, PassesOverPrefetchesLargerThanMemory) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  store.put("large", numbers(11));
  store.put("a", numbers(10));
  store.put("b", numbers(10));
  store.erase("b");
  store.prefetch(keys({"large", "a"}));
  store.wait();
  EXPECT_TRUE(on_disk(store, "large"));
  EXPECT_TRUE(in_memory(store, "a"));
}

TEST(StoreAhead, GoesOnWithTheNextPrefetchIfTheOneInFrontIsGone) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(2)));
  store.put("large", numbers(15));
  store.put("small", numbers(5));
  store.put("a", numbers(10));
  store.put("b", numbers(10));
  store.put("c", numbers(5));
  store.prefetch(keys({"large", "small"}));
  store.wait();
  EXPECT_TRUE(on_disk(store, "large"));
  EXPECT_TRUE(on_disk(store, "small"));
  store.erase("large");
  store.wait();
  EXPECT_TRUE(in_memory(store, "small"));
}

TEST(StoreAhead, Offloads) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(3)));
  for (int i = 0; i < 3; ++i) store.put(i, numbers(10, i));
  store.offload(keys({2, "not there", 0, 2}));
  store.wait();
  EXPECT_TRUE(on_disk(store, 2));
  EXPECT_TRUE(on_disk(store, 0));
  EXPECT_TRUE(in_memory(store, 1));
  EXPECT_EQ(store.bytes(), tens(1));
  EXPECT_EQ(store.statistics().evictions, 2u);
  EXPECT_EQ(store.statistics().moves_to_disk, 2u);
  EXPECT_EQ(store.get(2).to_vector<float>(), numbers(10, 2));
}

TEST(StoreAhead, KeepsInMemoryWhatCannotBeOffloaded) {
  const TemporaryFolder folder;
  Store large(with_both_tiers(folder, tens(3), tens(1)));
  large.put("a", numbers(10));  // with a header larger than the disk
  large.offload(keys({"a"}));
  large.wait();
  EXPECT_TRUE(in_memory(large, "a"));
  EXPECT_EQ(large.statistics().evictions, 0u);

  Store full(with_both_tiers(folder, tens(3), files_of_ten(1), Evict::nothing));
  full.put("a", numbers(10));
  full.put("b", numbers(10));
  full.offload(keys({"a", "b"}));
  full.wait();
  EXPECT_TRUE(on_disk(full, "a"));
  EXPECT_TRUE(in_memory(full, "b"));

  Store drops(with_both_tiers(folder, tens(3), files_of_ten(1)));
  drops.put("a", numbers(10));
  drops.put("b", numbers(10));
  drops.offload(keys({"a", "b"}));
  drops.wait();
  EXPECT_FALSE(drops.contains("a"));
  EXPECT_TRUE(on_disk(drops, "b"));
}

TEST(StoreAhead, OffloadsAreMadeBeforePrefetchesAndInsteadOfThoseOfTheSameKey) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  for (int i = 0; i < 3; ++i) store.put(i, numbers(10, i));
  store.prefetch(keys({1, 0}));
  store.wait();
  EXPECT_TRUE(on_disk(store, 1));
  store.offload(keys({1, 2}));  // 2 makes room, which 1 does not want any more
  store.wait();
  EXPECT_TRUE(on_disk(store, 1));
  EXPECT_TRUE(on_disk(store, 2));
  EXPECT_TRUE(in_memory(store, 0));
}

TEST(StoreAhead, ClearCancelsPrefetches) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  for (int i = 0; i < 3; ++i) store.put(i, numbers(10, i));
  store.prefetch(keys({0}));
  store.clear();
  for (int i = 0; i < 3; ++i) store.put(i, numbers(10, i));
  store.erase(2);
  store.wait();
  EXPECT_TRUE(on_disk(store, 0));
}

}  // namespace
}  // namespace reprise
