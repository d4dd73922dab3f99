// A store as its header describes it, one thread at a time.
#include "reprise/store/store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "store/store_support.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::file_header;
using testing::files_of_ten;
using testing::HookedCodec;
using testing::in_memory;
using testing::keys;
using testing::message_of;
using testing::numbers;
using testing::on_disk;
using testing::TemporaryFolder;
using testing::tens;
using ::testing::Test;
using testing::TrimCodec;
using testing::with_both_tiers;
using testing::with_memory;

// ---- values and keys ------------------------------------------------------------------------------------------------

TEST(Store, GivesBackWhatWasPut) {
  Store store(with_memory(1000));
  EXPECT_EQ(store.put("a", numbers(10)), PutResult::stored);
  const Array back = store.get("a");
  EXPECT_EQ(back.to_vector<float>(), numbers(10));
  EXPECT_EQ(back.shape(), Shape{10});
}

TEST(Store, KeepsElementAndShape) {
  Store store(with_memory(1000));
  const std::vector<std::int16_t> small(24, 7);
  store.put("a", ArrayView(small, {2, 3, 4}));
  EXPECT_EQ(store.get("a").element(), Element::int16);
  EXPECT_EQ(store.get("a").shape(), (Shape{2, 3, 4}));
}

TEST(Store, KeepsACopyThatLaterChangesDoNotReach) {
  Store store(with_memory(1000));
  std::vector<float> mine = numbers(10);
  store.put("a", mine);
  mine[0] = -1;
  EXPECT_EQ(store.get("a").as<float>()[0], 0.5f);
}

TEST(Store, TakesNumbersAndTextsAsKeysAndSevenIsSeven) {
  Store store(with_memory(1000));
  store.put(7, numbers(2));
  store.put(std::uint64_t{1} << 40, numbers(3));
  store.put(std::string("with \0 inside", 13), numbers(4));
  EXPECT_TRUE(store.contains("7"));
  EXPECT_TRUE(store.contains(std::int8_t{7}));
  EXPECT_TRUE(store.contains("1099511627776"));
  EXPECT_TRUE(store.contains(std::string("with \0 inside", 13)));
  EXPECT_FALSE(store.contains("with "));
  EXPECT_EQ(store.size(), 3u);
}

TEST(Store, TakesEmptyArrays) {
  Store store(with_memory(0));
  EXPECT_EQ(store.put("nothing", std::vector<float>{}), PutResult::stored);
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_EQ(store.take("nothing").shape(), Shape{0});
}

TEST(Store, GetsAgainAndAgainButTakesOnce) {
  Store store(with_memory(1000));
  store.put("a", numbers(10));
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
  EXPECT_EQ(store.bytes(), 40);
  EXPECT_EQ(store.take("a").to_vector<float>(), numbers(10));
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_THROW((void)store.take("a"), NotStored);
}

TEST(Store, NamesTheKeyThatIsNotThere) {
  Store store(with_memory(1000));
  EXPECT_NE(message_of<NotStored>([&] { (void)store.get("layer 3"); }).find("\"layer 3\""), std::string::npos);
  EXPECT_NE(message_of<NotStored>([&] { (void)store.take("layer 4"); }).find("\"layer 4\""), std::string::npos);
  EXPECT_NE(message_of<NotStored>([&] { (void)store.describe("layer 5"); }).find("\"layer 5\""), std::string::npos);
  EXPECT_EQ(store.find("layer 6"), std::nullopt);
}

TEST(Store, FindsWithoutAnError) {
  Store store(with_memory(1000));
  store.put("a", numbers(10));
  const auto found = store.find("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->to_vector<float>(), numbers(10));
  EXPECT_TRUE(store.contains("a"));
}

TEST(Store, ErasesAndSaysWhetherThereWasOne) {
  Store store(with_memory(1000));
  store.put("a", numbers(10));
  EXPECT_TRUE(store.erase("a"));
  EXPECT_FALSE(store.erase("a"));
  EXPECT_EQ(store.bytes(), 0);
}

TEST(Store, ClearsEverythingAndGoesOnCounting) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  store.put("a", numbers(10));
  store.put("b", numbers(10));
  EXPECT_GT(store.bytes(TierKind::disk), 0);
  store.clear();
  EXPECT_EQ(store.size(), 0u);
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_EQ(store.bytes(TierKind::disk), 0);
  EXPECT_EQ(store.statistics().stored_ever, 2u);
  EXPECT_EQ(store.statistics().in_memory + store.statistics().on_disk, 0u);
  EXPECT_EQ(store.put("a", numbers(10)), PutResult::stored);
  EXPECT_EQ(store.describe("a").number, 2u);
}

TEST(Store, DescribesAValue) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  store.put("a", numbers(10), {.cost = 2.5, .codec = &codec("half")});
  const Description in_memory = store.describe("a");
  EXPECT_EQ(in_memory.number, 0u);
  EXPECT_EQ(in_memory.bytes, 20);
  EXPECT_EQ(in_memory.plain_bytes, 40);
  EXPECT_EQ(in_memory.cost, 2.5);
  EXPECT_EQ(in_memory.tier, TierKind::memory);
  EXPECT_EQ(in_memory.codec, "half");
  EXPECT_EQ(in_memory.element, Element::float32);
  EXPECT_EQ(in_memory.shape, Shape{10});
  store.put("b", numbers(10));
  EXPECT_EQ(store.describe("a").tier, TierKind::disk);
  EXPECT_EQ(store.describe("a").bytes, 20);
  EXPECT_EQ(store.describe("b").codec, "exact");
}

// ---- which to remember ----------------------------------------------------------------------------------------------

std::vector<int> remembered(Store& store, int puts, double cost_of_each = 0) {
  std::vector<int> kept;
  for (int i = 0; i < puts; ++i) {
    if (store.put(i, numbers(1), cost_of_each * i) == PutResult::stored) kept.push_back(i);
    EXPECT_EQ(store.contains(i), !kept.empty() && kept.back() == i);
  }
  return kept;
}

TEST(Store, RemembersAllOrNoneOrEveryNth) {
  Store all({.remember = remember::all()}), none({.remember = remember::none()}),
      third({.remember = remember::every(3)});
  EXPECT_EQ(remembered(all, 4), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(remembered(none, 4), std::vector<int>{});
  EXPECT_EQ(remembered(third, 8), (std::vector{0, 3, 6}));
  EXPECT_EQ(third.statistics().not_remembered, 5u);
  EXPECT_THROW((void)remember::every(0), BadOption);
}

TEST(Store, RemembersEverythingByDefault) {
  Store store({.memory = 1000});
  EXPECT_EQ(remembered(store, 4), (std::vector{0, 1, 2, 3}));
  Store costly({.remember = remember::costly()});
  EXPECT_EQ(remembered(costly, 4, 50), (std::vector{2, 3}));
  Store cheaper({.remember = remember::costly(40)});
  EXPECT_EQ(remembered(cheaper, 4, 40), (std::vector{1, 2, 3}));
}

TEST(Store, TellsARuleAboutEveryPut) {
  std::vector<std::string> offers;
  const auto rule = [&](const Offer& offer) {
    offers.push_back(offer.key + " " + std::to_string(offer.number) + " " + std::to_string(offer.bytes) + " " +
                     std::to_string(static_cast<int>(offer.cost)));
    return offer.number != 1;
  };
  Store store({.remember = rule, .codec = &codec("half")});
  store.put("a", numbers(10), 5);
  store.put("b", numbers(1));
  store.enabled(false);
  store.put("c", numbers(1));  // a number, but no question
  store.enabled(true);
  store.put("a", numbers(2));
  EXPECT_EQ(offers, (std::vector<std::string>{"a 0 40 5", "b 1 4 0", "a 3 8 0"}));
}

TEST(Store, DropsTheValueFromBeforeIfTheNewOneIsNotRemembered) {
  Store store(with_memory(1000));
  store.put("a", numbers(10));
  store.remember(remember::none());
  EXPECT_EQ(store.put("a", numbers(10, 1)), PutResult::not_remembered);
  EXPECT_FALSE(store.contains("a"));
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_EQ(store.statistics().dropped, 0u);
}

TEST(Store, LeavesEverythingAsItIsWhileSwitchedOff) {
  Store store(with_memory(1000));
  store.put("a", numbers(10));
  EXPECT_TRUE(store.enabled());
  store.enabled(false);
  EXPECT_FALSE(store.enabled());
  EXPECT_EQ(store.put("a", numbers(10, 1)), PutResult::not_remembered);
  EXPECT_EQ(store.put("b", numbers(10, 1)), PutResult::not_remembered);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
  EXPECT_EQ(store.statistics().not_remembered, 2u);
  store.enabled(true);
  EXPECT_EQ(store.put("b", numbers(10, 1)), PutResult::stored);
}

TEST(Store, RefusesOptionsThatCannotBe) {
  EXPECT_NE(message_of<BadOption>([] { Store store({.memory = -1}); }).find("memory is -1"), std::string::npos);
  EXPECT_THROW(Store({.disk = DiskTier{.folder = "/tmp", .budget = -1}}), BadOption);
  EXPECT_THROW(Store({.remember = nullptr}), BadOption);
  Store store(with_memory(100));
  EXPECT_THROW(store.remember(nullptr), BadOption);
  EXPECT_NE(message_of<BadOption>([&] { store.put("a", numbers(1), std::nan("")); }).find("\"a\""), std::string::npos);
  EXPECT_EQ(store.size(), 0u);
}

// ---- what to evict --------------------------------------------------------------------------------------------------

TEST(Store, EvictsTheOldestOneByOneUntilTheNewOneFits) {
  Store store(with_memory(tens(3)));
  for (const char* key : {"a", "b", "c"}) store.put(key, numbers(10));
  store.put("small", numbers(5));
  EXPECT_FALSE(store.contains("a"));
  EXPECT_TRUE(store.contains("b"));
  store.put("large", numbers(20));
  EXPECT_FALSE(store.contains("b"));
  EXPECT_FALSE(store.contains("c"));
  EXPECT_TRUE(store.contains("small"));
  EXPECT_EQ(store.statistics().evictions, 3u);
  EXPECT_EQ(store.statistics().dropped, 3u);
}

TEST(Store, CountsAgeFromTheLastPutNotFromTheLastGet) {
  Store store(with_memory(tens(3)));
  for (const char* key : {"a", "b", "c"}) store.put(key, numbers(10));
  store.put("a", numbers(10, 1));
  (void)store.get("b");
  store.put("d", numbers(10));
  EXPECT_FALSE(store.contains("b"));
  EXPECT_TRUE(store.contains("a"));
}

TEST(Store, EvictsTheCheapestForEachByteItHolds) {
  Store store(with_memory(100, Evict::cheapest));
  store.put("costly", numbers(5), 10);                                     // 20 bytes, 0.5 each
  store.put("cheap", numbers(10), 12);                                     // 40 bytes, 0.3 each
  store.put("packed", numbers(10), {.cost = 7, .codec = &codec("half")});  // 20 bytes, 0.35 each
  store.put("next", numbers(10), 100);
  EXPECT_FALSE(store.contains("cheap"));
  store.put("last", numbers(8), 1);
  EXPECT_FALSE(store.contains("packed"));
  EXPECT_TRUE(store.contains("costly"));
}

TEST(Store, EvictsTheOldestOfEquallyCheapOnes) {
  Store store(with_memory(tens(3), Evict::cheapest));
  for (const char* key : {"c", "a", "b"}) store.put(key, numbers(10), 1);
  store.put("d", numbers(10), 1);
  EXPECT_FALSE(store.contains("c"));
  EXPECT_TRUE(store.contains("a"));
}

TEST(Store, RefusesTheNewValueIfNothingMayBeEvicted) {
  Store store(with_memory(tens(2), Evict::nothing));
  store.put("a", numbers(10));
  store.put("b", numbers(10));
  EXPECT_EQ(store.put("c", numbers(1)), PutResult::refused);
  EXPECT_FALSE(store.contains("c"));
  EXPECT_EQ(store.put("a", numbers(20, 1)), PutResult::refused);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
  EXPECT_EQ(store.put("a", numbers(10, 2)), PutResult::stored);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10, 2));
  EXPECT_EQ(store.statistics().refused, 2u);
  EXPECT_EQ(store.statistics().evictions, 0u);
}

TEST(Store, ThrowsIfAValueIsLargerThanTheBudget) {
  Store store(with_memory(tens(2)));
  store.put("a", numbers(10));
  const std::string message = message_of<DoesNotFit>([&] { store.put("a", numbers(21)); });
  EXPECT_NE(message.find("\"a\""), std::string::npos);
  EXPECT_NE(message.find("84 bytes"), std::string::npos);
  EXPECT_NE(message.find("80"), std::string::npos);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
  EXPECT_EQ(store.statistics().refused, 1u);
}

TEST(Store, CountsTheBytesOfTheReplacedValueAsFree) {
  Store store(with_memory(tens(3)));
  for (const char* key : {"a", "b", "c"}) store.put(key, numbers(10));
  store.put("c", numbers(10, 1));  // in its own place
  EXPECT_EQ(store.size(), 3u);
  store.put("c", numbers(20, 2));  // and that of the oldest
  EXPECT_FALSE(store.contains("a"));
  EXPECT_TRUE(store.contains("b"));
  store.put("b", numbers(1));  // smaller
  EXPECT_EQ(store.bytes(), 84);
  EXPECT_EQ(store.statistics().evictions, 1u);
  EXPECT_EQ(store.statistics().peak_bytes, tens(3));
}

// ---- codecs ---------------------------------------------------------------------------------------------------------

TEST(Store, KeepsValuesAsTheStoresCodecMakesThem) {
  Store store({.memory = 1000, .remember = remember::all(), .codec = &codec("half")});
  const std::vector<float> exact_in_half = {0.5f, 1.0f, -2.0f, 1024.0f};
  store.put("a", exact_in_half);
  EXPECT_EQ(store.bytes(), 8);
  EXPECT_EQ(store.get("a").to_vector<float>(), exact_in_half);
  store.put("b", exact_in_half, {.codec = &codec("exact")});
  EXPECT_EQ(store.bytes(), 24);
  EXPECT_EQ(store.statistics().before_coding, 32);
  EXPECT_EQ(store.statistics().after_coding, 24);
  EXPECT_EQ(store.statistics().kept_exactly, 0u);
}

TEST(Store, CountsTheRoomForCodingAndGivesBackWhatIsNotUsed) {
  const TrimCodec trim(3, 5);
  Store store({.memory = 1000, .remember = remember::all(), .codec = &trim});
  std::vector<float> mostly_zero(10);
  mostly_zero[0] = 1.5f;
  store.put("a", mostly_zero);
  EXPECT_EQ(store.bytes(), 4);
  EXPECT_EQ(store.statistics().peak_bytes, 125);
  EXPECT_EQ(store.get("a").to_vector<float>(), mostly_zero);
}

TEST(Store, KeepsExactlyWhatTheCodecCannotCode) {
  const TrimCodec trim(3);
  Store store({.memory = 100, .remember = remember::all(), .codec = &trim});
  store.put("no room is enough", numbers(3));
  EXPECT_EQ(store.statistics().kept_exactly, 1u);
  std::vector<float> refused_late(5);
  reinterpret_cast<unsigned char&>(refused_late[0]) = 0xEE;
  store.put("refused late", refused_late);
  EXPECT_EQ(store.statistics().kept_exactly, 2u);
  store.put("room larger than the budget", numbers(10));
  EXPECT_EQ(store.statistics().kept_exactly, 3u);
  EXPECT_EQ(store.describe("room larger than the budget").codec, "exact");
  EXPECT_EQ(store.get("no room is enough").to_vector<float>(), numbers(3));
  EXPECT_EQ(store.get("refused late").to_vector<float>(), refused_late);
  EXPECT_EQ(store.get("room larger than the budget").to_vector<float>(), numbers(10));
}

TEST(Store, EvictsOthersForTheRoomForCoding) {
  const TrimCodec trim(2);
  Store store({.memory = 100, .remember = remember::all()});
  store.put("a", numbers(10));
  store.put("b", numbers(5));
  store.put("c", numbers(10), {.codec = &trim});  // 80 bytes at first, then 40
  EXPECT_FALSE(store.contains("a"));
  EXPECT_TRUE(store.contains("b"));
  EXPECT_EQ(store.bytes(), 60);
}

TEST(Store, LosesTheReplacedValueOnlyIfItsBytesWereNeededAndCodingFailed) {
  std::vector<float> beyond_half(21);  // 42 bytes if it could be coded, and 84 as it is
  beyond_half[20] = 1e10f;
  for (const Bytes memory : {83, 81}) {
    Store store({.memory = memory, .remember = remember::all(), .codec = &codec("half")});
    store.put("a", numbers(20));
    EXPECT_EQ(store.bytes(), 40);
    EXPECT_THROW(store.put("a", beyond_half), DoesNotFit);
    EXPECT_EQ(store.contains("a"), memory == 83);
    EXPECT_EQ(store.bytes(), memory == 83 ? 40 : 0);
  }
}

TEST(Store, GivesEverythingBackIfACodecThrows) {
  HookedCodec codec(reprise::codec("half"));
  Store store({.memory = 1000, .remember = remember::all(), .codec = &codec});
  store.put("a", numbers(10));
  codec.encoding = [] { throw Error("broken"); };
  EXPECT_THROW(store.put("b", numbers(10)), Error);
  EXPECT_EQ(store.bytes(), 20);
  codec.decoding = [] { throw Error("broken"); };
  EXPECT_THROW((void)store.take("a"), Error);
  EXPECT_TRUE(store.contains("a"));
}

TEST(Store, RefusesWhatACodecClaimsToHaveWrittenBehindItsRoom) {
  class Liar : public TrimCodec {
    std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte>) const override {
      return array.bytes() + 1;
    }
  } liar;
  Store store({.memory = 1000, .remember = remember::all(), .codec = &liar});
  EXPECT_THROW(store.put("a", numbers(10)), Error);
  EXPECT_EQ(store.bytes(), 0);
}

// ---- the disk -------------------------------------------------------------------------------------------------------

TEST(Store, MovesToDiskWhatLeavesMemory) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(2)));
  for (int i = 0; i < 5; ++i) store.put(i, numbers(10, i));
  EXPECT_EQ(store.size(), 5u);
  EXPECT_TRUE(on_disk(store, 2));
  EXPECT_TRUE(in_memory(store, 3));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(store.get(i).to_vector<float>(), numbers(10, i));
  EXPECT_EQ(store.bytes(), tens(2));
  EXPECT_EQ(store.bytes(TierKind::disk), files_of_ten(3));
  EXPECT_EQ(store.statistics().evictions, 3u);
  EXPECT_EQ(store.statistics().moves_to_disk, 3u);
  EXPECT_EQ(store.statistics().dropped, 0u);
  EXPECT_EQ(store.statistics().in_memory, 2u);
  EXPECT_EQ(store.statistics().on_disk, 3u);
}

TEST(Store, MovesCodedValuesAsTheyAre) {
  const TemporaryFolder folder;
  StoreOptions options = with_both_tiers(folder, 50);
  options.codec = &codec("half");
  Store store(std::move(options));
  const std::vector<float> exact_in_half = {0.5f, 1.0f, -2.0f, 1024.0f};
  for (int i = 0; i < 10; ++i) store.put(i, exact_in_half);
  EXPECT_EQ(store.bytes(TierKind::disk), 4 * (8 + file_header));
  EXPECT_EQ(store.get(0).to_vector<float>(), exact_in_half);
  EXPECT_EQ(store.take(0).to_vector<float>(), exact_in_half);
}

TEST(Store, ReadsCodedValuesFromDiskAlsoWhenMemoryIsFull) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  const std::vector<float> exact_in_half = {0.5f, 1.0f, -2.0f, 1024.0f};
  store.put("a", exact_in_half, {.codec = &codec("half")});
  store.put("full", numbers(10));
  ASSERT_TRUE(on_disk(store, "a"));
  EXPECT_EQ(store.get("a").to_vector<float>(), exact_in_half);
  EXPECT_TRUE(in_memory(store, "full"));
  EXPECT_EQ(store.statistics().peak_bytes, tens(1));
  store.erase("full");
  store.reset_statistics();
  EXPECT_EQ(store.get("a").to_vector<float>(), exact_in_half);
  EXPECT_EQ(store.statistics().peak_bytes, 8);
}

TEST(Store, EvictsFromDiskByTheSameRule) {
  const TemporaryFolder folder;
  Store oldest(with_both_tiers(folder, tens(1), files_of_ten(2)));
  for (int i = 0; i < 4; ++i) oldest.put(i, numbers(10, i));
  EXPECT_FALSE(oldest.contains(0));
  EXPECT_TRUE(on_disk(oldest, 1));
  EXPECT_EQ(oldest.statistics().dropped, 1u);
  EXPECT_EQ(oldest.statistics().evictions, 3u);
  EXPECT_EQ(oldest.statistics().peak_disk_bytes, files_of_ten(2));

  Store cheapest(with_both_tiers(folder, tens(1), files_of_ten(2), Evict::cheapest));
  for (int i = 0; i < 4; ++i) cheapest.put(i, numbers(10, i), i == 1 ? 1 : 100);
  EXPECT_FALSE(cheapest.contains(1));
  EXPECT_TRUE(on_disk(cheapest, 0));
}

TEST(Store, DropsWhatMemoryEvictsIfItIsLargerThanTheDisk) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(2), files_of_ten(1)));
  store.put("small", numbers(10));
  store.put("small too", numbers(10));
  store.put("large", numbers(20));  // both leave, and the disk has room for one
  EXPECT_FALSE(store.contains("small"));
  EXPECT_TRUE(on_disk(store, "small too"));
  store.put("next", numbers(20));
  EXPECT_FALSE(store.contains("large"));
  EXPECT_TRUE(on_disk(store, "small too"));
  EXPECT_EQ(store.statistics().dropped, 2u);
}

TEST(Store, PutsWhatIsTooLargeForMemoryStraightOnDisk) {
  const TemporaryFolder folder;
  StoreOptions options = with_both_tiers(folder, tens(2));
  options.codec = &codec("half");
  Store store(std::move(options));
  store.put("a", numbers(10), {.codec = &codec("exact")});
  EXPECT_EQ(store.put("large", numbers(100, 3)), PutResult::stored);
  EXPECT_TRUE(in_memory(store, "a"));
  EXPECT_TRUE(on_disk(store, "large"));
  EXPECT_EQ(store.describe("large").codec, "exact");
  EXPECT_EQ(store.get("large").to_vector<float>(), numbers(100, 3));
  EXPECT_EQ(store.statistics().peak_bytes, 40);
  EXPECT_EQ(store.statistics().kept_exactly, 1u);
  EXPECT_EQ(store.statistics().moves_to_disk, 0u);
  EXPECT_EQ(store.statistics().after_coding, 440);
  EXPECT_EQ(store.take("large").to_vector<float>(), numbers(100, 3));
  EXPECT_EQ(store.bytes(TierKind::disk), 0);
}

TEST(Store, DoesNotCountTheExactCodecAsKeptExactly) {
  const TemporaryFolder folder;
  StoreOptions options = with_both_tiers(folder, tens(2));
  options.codec = &codec("exact");
  Store store(std::move(options));
  store.put("large", numbers(100));
  EXPECT_EQ(store.statistics().kept_exactly, 0u);
}

TEST(Store, ThrowsIfAValueIsLargerThanBothBudgets) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(2), tens(3)));
  const std::string message = message_of<DoesNotFit>([&] { store.put("a", numbers(25)); });
  EXPECT_NE(message.find("memory is 80, of the disk 120"), std::string::npos) << message;
  EXPECT_EQ(store.put("b", numbers(22)), PutResult::stored);  // 88 bytes and a header
}

TEST(Store, PutsOnDiskWhatMemoryHasNoRoomForIfNothingMayBeEvicted) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1), files_of_ten(2), Evict::nothing));
  EXPECT_EQ(store.put("a", numbers(10)), PutResult::stored);
  EXPECT_EQ(store.put("b", numbers(10)), PutResult::stored);
  EXPECT_EQ(store.put("c", numbers(10)), PutResult::stored);
  EXPECT_TRUE(in_memory(store, "a"));
  EXPECT_TRUE(on_disk(store, "c"));
  EXPECT_EQ(store.put("d", numbers(1)), PutResult::refused);
  EXPECT_EQ(store.put("c", numbers(10, 1)), PutResult::stored);  // in its own place
  EXPECT_EQ(store.get("c").to_vector<float>(), numbers(10, 1));
  EXPECT_EQ(store.put("c", numbers(11, 1)), PutResult::refused);
  EXPECT_EQ(store.get("c").to_vector<float>(), numbers(10, 1));
  EXPECT_EQ(store.statistics().dropped + store.statistics().evictions, 0u);
}

TEST(Store, ReplacesAcrossTiers) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  store.put("a", numbers(10));
  store.put("a", numbers(100, 1));
  EXPECT_TRUE(on_disk(store, "a"));
  EXPECT_EQ(store.bytes(), 0);
  store.put("a", numbers(5, 2));
  EXPECT_TRUE(in_memory(store, "a"));
  EXPECT_EQ(store.bytes(TierKind::disk), 0);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(5, 2));
}

// ---- ahead of time --------------------------------------------------------------------------------------------------

TEST(Store, HasNothingToDoAheadOfTimeWithoutADisk) {
  Store store(with_memory(100));
  store.put("a", numbers(10));
  store.prefetch(keys({"a"}));
  store.offload(keys({"a"}));
  store.wait();
  EXPECT_TRUE(in_memory(store, "a"));
}

// ---- questions ------------------------------------------------------------------------------------------------------

TEST(Store, AnswersQuestionsAboutBytes) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, 100, 1000));
  store.put("a", numbers(10));
  EXPECT_EQ(store.bytes(), 40);
  EXPECT_EQ(store.budget(), 100);
  EXPECT_DOUBLE_EQ(store.utilisation(), 0.4);
  store.put("b", numbers(20));
  EXPECT_EQ(store.bytes(TierKind::disk), 72);
  EXPECT_EQ(store.budget(TierKind::disk), 1000);
  EXPECT_DOUBLE_EQ(store.utilisation(TierKind::disk), 0.072);

  Store without(with_memory(0));
  EXPECT_EQ(without.utilisation(), 0);
  EXPECT_EQ(without.budget(TierKind::disk), 0);
  EXPECT_EQ(without.bytes(TierKind::disk), 0);
  EXPECT_EQ(without.utilisation(TierKind::disk), 0);
}

TEST(Store, CountsGetsHitsAndMisses) {
  Store store(with_memory(1000));
  store.put("a", numbers(10));
  (void)store.get("a");
  (void)store.find("a");
  (void)store.find("b");
  (void)store.take("a");
  EXPECT_THROW((void)store.get("a"), NotStored);
  (void)store.contains("a");
  const StoreStatistics statistics = store.statistics();
  EXPECT_EQ(statistics.puts, 1u);
  EXPECT_EQ(statistics.gets, 5u);
  EXPECT_EQ(statistics.hits, 3u);
  EXPECT_EQ(statistics.misses, 2u);
}

TEST(Store, CountsFromZeroAfterAResetButKeepsWhatIsThere) {
  const TemporaryFolder folder;
  Store store(with_both_tiers(folder, tens(1)));
  store.put("a", numbers(10));
  store.put("b", numbers(10));
  store.put("c", numbers(5));
  store.reset_statistics();
  StoreStatistics expected;
  expected.in_memory = 1;
  expected.on_disk = 2;
  expected.bytes = expected.peak_bytes = 20;
  expected.disk_bytes = expected.peak_disk_bytes = files_of_ten(2);
  EXPECT_EQ(store.statistics(), expected);
  store.put("d", numbers(1));
  EXPECT_EQ(store.describe("d").number, 3u);
}

TEST(Store, NamesItsEnums) {
  EXPECT_STREQ(name(Evict::oldest), "oldest");
  EXPECT_STREQ(name(Evict::cheapest), "cheapest");
  EXPECT_STREQ(name(Evict::nothing), "nothing");
  EXPECT_STREQ(name(TierKind::memory), "memory");
  EXPECT_STREQ(name(TierKind::disk), "disk");
}

}  // namespace
}  // namespace reprise
