// A store that many threads use at once. Nothing sleeps here: gates hold an operation in the middle, so that what
// happens meanwhile happens for certain.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "reprise/store/store.h"
#include "store/buffer.h"
#include "store/store_support.h"
#include "support/cases.h"
#include "support/random_trace.h"
#include "support/temporary_folder.h"

namespace reprise::store_thread_test {
using namespace internal;
namespace {

namespace fs = std::filesystem;
using testing::FileOperation;
using testing::Gate;
using testing::HookedCodec;
using testing::in_memory;
using testing::keys;
using testing::numbers;
using testing::on_disk;
using testing::Random;
using testing::TemporaryFolder;
using testing::TrimCodec;
using testing::WatchedFiles;

constexpr Bytes ten = 40, file_of_ten = 72;

StoreOptions with_memory(Bytes memory, Evict rule = Evict::oldest) {
  return {.memory = memory, .remember = remember::all(), .evict = rule};
}

StoreOptions with_disk(const TemporaryFolder& folder, Bytes memory, WatchedFiles& files) {
  return {.memory = memory, .disk = DiskTier{.folder = folder.path()}, .remember = remember::all(), .files = &files};
}

template <class Call>
auto in_thread(Call call) {
  return std::async(std::launch::async, std::move(call));
}

// What is held up does not end, however long one looks. (One that ended by mistake had time enough to do so.)
template <class Result>
void expect_held_up(const std::future<Result>& result) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(result.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    std::this_thread::yield();
  }
}

// Every operation of this kind on a value's file waits at the gate.
void hold(WatchedFiles& files, FileOperation kind, Gate& gate) {
  files.before = [&gate, kind](FileOperation operation, const fs::path& path) {
    if (operation == kind && path.extension() == ".value") gate.pass();
  };
}

// ---- an operation in the middle -------------------------------------------------------------------------------------

TEST(StoreThread, EverythingElseGoesOnWhileAValueIsWrittenToDisk) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::write, gate);
  Store store(with_disk(folder, 2 * ten, files));
  store.put("old", numbers(10, 1));
  store.put("other", numbers(5, 2));
  gate.close();
  auto put = in_thread([&] { return store.put("new", numbers(10, 3)); });
  gate.await();

  EXPECT_EQ(store.get("old").to_vector<float>(), numbers(10, 1));  // the one that is being moved
  EXPECT_TRUE(in_memory(store, "old"));
  EXPECT_EQ(store.get("other").to_vector<float>(), numbers(5, 2));
  EXPECT_EQ(store.put("other", numbers(3, 4)), PutResult::stored);
  EXPECT_EQ(store.put("small", numbers(4, 5)), PutResult::stored);
  EXPECT_EQ(store.take("small").to_vector<float>(), numbers(4, 5));
  EXPECT_TRUE(store.erase("other"));
  EXPECT_EQ(store.statistics().moves_to_disk, 0u);
  EXPECT_EQ(store.bytes(), ten);
  EXPECT_EQ(store.bytes(TierKind::disk), file_of_ten);

  gate.open();
  EXPECT_EQ(put.get(), PutResult::stored);
  EXPECT_EQ(store.get("old").to_vector<float>(), numbers(10, 1));
  EXPECT_EQ(store.get("new").to_vector<float>(), numbers(10, 3));
}

TEST(StoreThread, EverythingElseGoesOnWhileAValueIsReadFromDisk) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::read, gate);
  Store store(with_disk(folder, ten, files));
  store.put("a", numbers(10, 1));
  store.put("b", numbers(10, 2));
  gate.close();
  auto get = in_thread([&] { return store.get("a").to_vector<float>(); });
  gate.await();
  EXPECT_EQ(store.get("b").to_vector<float>(), numbers(10, 2));
  EXPECT_EQ(store.put("c", numbers(10, 3)), PutResult::stored);  // b moves to disk beside it
  EXPECT_TRUE(store.erase("a"));
  EXPECT_FALSE(store.contains("a"));
  EXPECT_EQ(store.bytes(TierKind::disk), 2 * file_of_ten);  // still there for the one who reads it
  gate.open();
  EXPECT_EQ(get.get(), numbers(10, 1));
  EXPECT_EQ(store.bytes(TierKind::disk), file_of_ten);
  EXPECT_EQ(files.bytes(), file_of_ten);
}

TEST(StoreThread, EverythingElseGoesOnWhileAFileIsRemoved) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::remove_file, gate);
  Store store(with_disk(folder, ten, files));
  store.put("a", numbers(10, 1));
  store.put("b", numbers(10, 2));
  gate.close();
  auto erase = in_thread([&] { return store.erase("a"); });
  gate.await();
  EXPECT_FALSE(store.contains("a"));
  EXPECT_EQ(store.get("b").to_vector<float>(), numbers(10, 2));
  EXPECT_EQ(store.put("a", numbers(10, 3)), PutResult::stored);
  EXPECT_EQ(store.bytes(TierKind::disk), 2 * file_of_ten);
  gate.open();
  EXPECT_TRUE(erase.get());
  EXPECT_EQ(store.bytes(TierKind::disk), file_of_ten);
}

TEST(StoreThread, EverythingElseGoesOnWhileACodecIsAtWork) {
  Gate encoding, decoding;
  HookedCodec codec(reprise::codec("half"));
  codec.encoding = [&] { encoding.pass(); };
  codec.decoding = [&] { decoding.pass(); };
  Store store(with_memory(100));
  const std::vector<float> value = {1, 2, 3, 4};
  store.put("slow", value, {.codec = &codec});
  encoding.close();
  decoding.close();
  auto get = in_thread([&] { return store.get("slow").to_vector<float>(); });
  auto put = in_thread([&] { return store.put("slow too", value, {.codec = &codec}); });
  encoding.await();
  decoding.await();
  EXPECT_EQ(store.bytes(), 16);
  EXPECT_FALSE(store.contains("slow too"));
  EXPECT_EQ(store.put("fast", numbers(10)), PutResult::stored);
  EXPECT_EQ(store.get("fast").to_vector<float>(), numbers(10));
  encoding.open();
  decoding.open();
  EXPECT_EQ(get.get(), value);
  EXPECT_EQ(put.get(), PutResult::stored);
}

TEST(StoreThread, BytesStayCountedUntilTheLastReaderHasFinished) {
  Gate gate;
  HookedCodec codec(reprise::codec("half"));
  codec.decoding = [&] { gate.pass(); };
  Store store(with_memory(100));
  const std::vector<float> value = {1, 2, 3, 4};
  for (const char* how : {"take", "erase", "replace", "clear"}) {
    store.put("a", value, {.codec = &codec});
    gate.close();
    auto reader = in_thread([&] { return store.get("a").to_vector<float>(); });
    gate.await();
    if (how == std::string("erase")) store.erase("a");
    if (how == std::string("clear")) store.clear();
    if (how == std::string("replace")) store.put("a", std::vector<float>{});
    std::future<std::vector<float>> taker;
    if (how == std::string("take")) {
      taker = in_thread([&] { return store.take("a").to_vector<float>(); });
      gate.await(2);
    }
    EXPECT_EQ(store.bytes(), 8) << how;
    gate.open();
    EXPECT_EQ(reader.get(), value);
    if (taker.valid()) EXPECT_EQ(taker.get(), value);
    EXPECT_EQ(store.bytes(), 0) << how;
    store.clear();
  }
}

TEST(StoreThread, AReaderKeepsItsBytesWhileTheValueMovesToDiskUnderIt) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  HookedCodec codec(reprise::codec("half"));
  codec.decoding = [&] { gate.pass(); };
  Store store(with_disk(folder, ten, files));
  const std::vector<float> value = {1, 2, 3, 4};
  store.put("a", value, {.codec = &codec});
  gate.close();
  auto reader = in_thread([&] { return store.get("a").to_vector<float>(); });
  gate.await();
  store.offload(keys({"a"}));
  store.wait();
  EXPECT_TRUE(on_disk(store, "a"));
  EXPECT_EQ(store.bytes(), 8);                                           // in both for as long as it is read
  auto writer = in_thread([&] { return store.put("b", numbers(10)); });  // needs these 8 bytes as well
  expect_held_up(writer);
  gate.open();
  EXPECT_EQ(reader.get(), value);
  EXPECT_EQ(writer.get(), PutResult::stored);
  EXPECT_EQ(store.get("a").to_vector<float>(), value);
  EXPECT_EQ(store.bytes(), ten);
}

TEST(StoreThread, AnEraseDuringAMoveLeavesNoFile) {
  for (const FileOperation point : {FileOperation::create, FileOperation::write, FileOperation::close}) {
    const TemporaryFolder folder;
    WatchedFiles files;
    Gate gate;
    hold(files, point, gate);
    Store store(with_disk(folder, ten, files));
    store.put("a", numbers(10, 1));
    gate.close();
    store.offload(keys({"a"}));
    gate.await();
    EXPECT_TRUE(store.erase("a"));
    EXPECT_EQ(store.bytes(), ten);  // still being written
    gate.open();
    store.wait();
    EXPECT_EQ(store.bytes(), 0);
    EXPECT_EQ(store.bytes(TierKind::disk), 0);
    EXPECT_EQ(files.bytes(), 0);
    EXPECT_EQ(store.statistics().evictions, 0u);
    EXPECT_EQ(store.size(), 0u);
  }
}

TEST(StoreThread, AReplacementDuringAMoveWins) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::write, gate);
  Store store(with_disk(folder, 2 * ten, files));
  store.put("a", numbers(10, 1));
  gate.close();
  store.offload(keys({"a"}));
  gate.await();
  EXPECT_EQ(store.put("a", numbers(5, 2)), PutResult::stored);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(5, 2));
  auto larger = in_thread([&] { return store.put("a", numbers(20, 3)); });  // needs the bytes that are being written
  expect_held_up(larger);
  gate.open();
  EXPECT_EQ(larger.get(), PutResult::stored);
  store.wait();
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(20, 3));
  EXPECT_EQ(store.bytes(), 2 * ten);
  EXPECT_EQ(files.bytes(), 0);
}

TEST(StoreThread, AReplacementThatNeedsThePlaceOfAValueWaitsUntilThatHasMoved) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::write, gate);
  Store store(with_disk(folder, ten, files));
  store.put("a", numbers(10, 1));
  gate.close();
  store.offload(keys({"a"}));
  gate.await();
  auto put = in_thread([&] { return store.put("a", numbers(10, 2)); });
  expect_held_up(put);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10, 1));
  gate.open();
  EXPECT_EQ(put.get(), PutResult::stored);
  store.wait();
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10, 2));
  EXPECT_TRUE(in_memory(store, "a"));
  EXPECT_EQ(files.bytes(), 0);
}

TEST(StoreThread, AnEraseDuringAPrefetchLeavesNothing) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::read, gate);
  Store store(with_disk(folder, ten, files));
  store.put("a", numbers(10, 1));
  store.offload(keys({"a"}));
  store.wait();
  gate.close();
  store.prefetch(keys({"a"}));
  gate.await();
  EXPECT_EQ(store.bytes(), ten);
  EXPECT_TRUE(on_disk(store, "a"));
  EXPECT_TRUE(store.erase("a"));
  gate.open();
  store.wait();
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_EQ(files.bytes(), 0);
  EXPECT_EQ(store.statistics().moves_to_memory, 0u);
}

TEST(StoreThread, AGetOfAValueThatIsBeingPrefetchedWaitsForThatAndDoesNotReadAgain) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::read, gate);
  Store store(with_disk(folder, 2 * ten, files));
  store.put("a", numbers(10, 1));
  store.put("b", numbers(10, 2));
  store.offload(keys({"a"}));
  store.wait();
  gate.close();
  store.prefetch(keys({"a"}));
  gate.await();
  auto get = in_thread([&] { return store.get("a").to_vector<float>(); });
  auto find = in_thread([&] { return store.find("a")->to_vector<float>(); });
  expect_held_up(get);
  expect_held_up(find);
  EXPECT_EQ(store.get("b").to_vector<float>(), numbers(10, 2));
  gate.open();
  EXPECT_EQ(get.get(), numbers(10, 1));
  EXPECT_EQ(find.get(), numbers(10, 1));
  EXPECT_EQ(files.count(FileOperation::open), 1);
}

TEST(StoreThread, AGetWhoseFilePrefetchMovesAwayStillReadsIt) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  std::atomic<bool> first = true;
  files.before = [&](FileOperation operation, const fs::path&) {
    if (operation == FileOperation::read && first.exchange(false)) gate.pass();
  };
  Store store(with_disk(folder, ten, files));
  store.put("a", numbers(10, 1));
  store.offload(keys({"a"}));
  store.wait();
  gate.close();
  auto get = in_thread([&] { return store.get("a").to_vector<float>(); });
  gate.await();
  store.prefetch(keys({"a"}));
  store.wait();
  EXPECT_TRUE(in_memory(store, "a"));
  EXPECT_EQ(store.bytes(TierKind::disk), file_of_ten);
  store.offload(keys({"a"}));  // into another file
  store.wait();
  EXPECT_EQ(store.bytes(TierKind::disk), 2 * file_of_ten);
  gate.open();
  EXPECT_EQ(get.get(), numbers(10, 1));
  EXPECT_EQ(store.bytes(TierKind::disk), file_of_ten);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10, 1));
}

TEST(StoreThread, AnOffloadComesInsteadOfAPrefetchThatHasBegun) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::write, gate);
  Store store(with_disk(folder, ten, files));
  store.put("a", numbers(10, 1));
  gate.close();
  auto put = in_thread([&] { return store.put("b", numbers(10, 2)); });
  gate.await();  // a is on its way to disk
  store.prefetch(keys({"a"}));
  auto wait = in_thread([&] {
    store.wait();
    return true;
  });
  expect_held_up(wait);
  store.offload(keys({"a"}));
  gate.open();
  EXPECT_EQ(put.get(), PutResult::stored);
  EXPECT_TRUE(wait.get());
  store.erase("b");
  store.wait();
  EXPECT_TRUE(on_disk(store, "a"));
}

TEST(StoreThread, PrefetchesGoOnByThemselvesWhenTheOneInFrontIsGone) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Store store(with_disk(folder, 2 * ten, files));
  store.put("large", numbers(15));
  store.put("small", numbers(5));
  store.put("a", numbers(10));
  store.put("b", numbers(10));
  store.put("c", numbers(5));
  store.prefetch(keys({"large", "small"}));
  store.wait();
  EXPECT_TRUE(on_disk(store, "small"));
  store.erase("large");
  while (!in_memory(store, "small")) std::this_thread::yield();
}

// ---- waiting for room -----------------------------------------------------------------------------------------------

TEST(StoreThread, APutWaitsForTheRoomThatAMoveToDiskMakes) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::write, gate);
  Store store(with_disk(folder, ten, files));
  store.put("a", numbers(10, 1));
  gate.close();
  store.offload(keys({"a"}));
  gate.await();
  auto first = in_thread([&] { return store.put("b", numbers(10, 2)); });
  auto second = in_thread([&] { return store.put("c", numbers(10, 3)); });
  expect_held_up(first);
  expect_held_up(second);
  EXPECT_EQ(store.bytes(), ten);
  gate.open();
  EXPECT_EQ(first.get(), PutResult::stored);
  EXPECT_EQ(second.get(), PutResult::stored);
  EXPECT_EQ(store.size(), 3u);
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10, 1));
  EXPECT_EQ(store.get("b").to_vector<float>(), numbers(10, 2));
  EXPECT_EQ(store.get("c").to_vector<float>(), numbers(10, 3));
}

TEST(StoreThread, APutIsNotRefusedWhileTheRoomForCodingAnotherMayComeBack) {
  Gate gate;
  const TrimCodec trim(2);
  HookedCodec slow(trim);
  slow.encoding = [&] { gate.pass(); };
  Store store(with_memory(100, Evict::nothing));
  gate.close();
  auto slow_put = in_thread([&] { return store.put("slow", numbers(10), {.codec = &slow}); });
  gate.await();
  EXPECT_EQ(store.bytes(), 80);
  auto fast_put = in_thread([&] { return store.put("fast", numbers(10)); });
  expect_held_up(fast_put);
  gate.open();
  EXPECT_EQ(slow_put.get(), PutResult::stored);
  EXPECT_EQ(fast_put.get(), PutResult::stored);
  EXPECT_EQ(store.put("no room", numbers(10)), PutResult::refused);  // and now no thread's work frees anything
}

TEST(StoreThread, AReplacementWaitsForThoseWhoReadWhatItReplaces) {
  Gate gate;
  HookedCodec codec(reprise::codec("exact"));
  codec.decoding = [&] { gate.pass(); };
  for (const Evict rule : {Evict::nothing, Evict::oldest}) {
    Store store(with_memory(2 * ten, rule));
    store.put("other", numbers(10));
    store.put("a", numbers(10, 1), {.codec = &codec});
    gate.close();
    auto reader = in_thread([&] { return store.get("a").to_vector<float>(); });
    gate.await();
    auto writer = in_thread([&] { return store.put("a", numbers(10, 2)); });
    expect_held_up(writer);
    gate.open();
    EXPECT_EQ(reader.get(), numbers(10, 1));
    EXPECT_EQ(writer.get(), PutResult::stored);
    EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10, 2));
    EXPECT_TRUE(store.contains("other"));
  }
}

TEST(StoreThread, AMoveWaitsForTheRoomOnDiskThatAReaderHolds) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Gate gate;
  hold(files, FileOperation::read, gate);
  StoreOptions options = with_disk(folder, ten, files);
  options.disk->budget = file_of_ten;
  Store store(options);
  store.put("a", numbers(10, 1));
  store.put("b", numbers(10, 2));
  gate.close();
  auto reader = in_thread([&] { return store.get("a").to_vector<float>(); });
  gate.await();
  auto writer = in_thread([&] { return store.put("c", numbers(10, 3)); });  // b moves; a is dropped for it
  expect_held_up(writer);
  gate.open();
  EXPECT_EQ(reader.get(), numbers(10, 1));
  EXPECT_EQ(writer.get(), PutResult::stored);
  EXPECT_TRUE(on_disk(store, "b"));
  EXPECT_FALSE(store.contains("a"));
  EXPECT_EQ(files.peak(), file_of_ten);
}

// ---- rules that use the store ---------------------------------------------------------------------------------------

TEST(StoreThread, ARuleMayUseTheStoreItIsFor) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Store* self = nullptr;
  StoreOptions options = with_disk(folder, ten, files);
  options.remember = [&](const Offer& offer) {
    if (offer.key == "inner") return true;
    EXPECT_EQ(self->put("inner", numbers(10, 7)), PutResult::stored);
    EXPECT_EQ(self->get("inner").to_vector<float>(), numbers(10, 7));
    self->offload(keys({"inner"}));
    self->wait();
    (void)self->statistics();
    self->remember(*std::make_unique<Remember>(remember::all()));  // ends the rule that is running
    return self->erase("inner");
  };
  Store store(options);
  self = &store;
  EXPECT_EQ(store.put("outer", numbers(10, 1)), PutResult::stored);
  EXPECT_EQ(store.get("outer").to_vector<float>(), numbers(10, 1));
  EXPECT_EQ(store.size(), 1u);
}

TEST(StoreThread, RulesThatUseTheStoreDoNotWaitForEachOther) {
  Store* self = nullptr;
  StoreOptions options = with_memory(3 * ten);
  options.remember = [&](const Offer& offer) {
    if (offer.key.size() == 1) {
      self->put(offer.key + offer.key, numbers(10));
      (void)self->find(offer.key);
    }
    return true;
  };
  Store store(options);
  self = &store;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) store.put((i + t) % 5, numbers(10));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.statistics().puts, 1600u);
  EXPECT_LE(store.statistics().peak_bytes, 3 * ten);
}

// ---- one key --------------------------------------------------------------------------------------------------------

TEST(StoreThread, OnlyOneOfManyTakesAValue) {
  const TemporaryFolder folder;
  for (const Bytes memory : {ten, Bytes{0}}) {
    WatchedFiles files;
    Store store(with_disk(folder, memory, files));
    std::atomic<int> taken = 0, stored = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) {
          if (t == 0) {
            if (!store.contains("a") && store.put("a", numbers(10, i)) == PutResult::stored) ++stored;
          } else {
            try {
              (void)store.take("a");
              ++taken;
            } catch (const NotStored&) {
            }
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken + static_cast<int>(store.size()), stored);
    const StoreStatistics statistics = store.statistics();
    EXPECT_EQ(statistics.gets, 300u);
    EXPECT_EQ(statistics.hits, static_cast<std::uint64_t>(taken));
  }
}

TEST(StoreThread, OneOfManyPutsOfAKeyWinsAndTheSumsAreExact) {
  for (const Evict rule : {Evict::oldest, Evict::nothing}) {
    Store store(with_memory(ten, rule));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i) (void)store.put("a", numbers(static_cast<std::size_t>(1 + (i * 7 + t) % 10), t));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(store.size(), 1u);
    EXPECT_EQ(store.bytes(), store.describe("a").bytes);
    EXPECT_EQ(store.statistics().in_memory, 1u);
    const std::vector<float> winner = store.get("a").to_vector<float>();
    EXPECT_EQ(winner, numbers(winner.size(), static_cast<int>(winner[0]) / 1000));
  }
}

TEST(StoreThread, ATakeGivesTheValueThatItRemoves) {
  Gate gate;
  HookedCodec codec(reprise::codec("exact"));
  codec.decoding = [&] { gate.pass(); };
  Store store(with_memory(1000));
  store.put("a", numbers(10, 1), {.codec = &codec});
  gate.close();
  auto take = in_thread([&] { return store.take("a").to_vector<float>(); });
  gate.await();
  store.put("a", numbers(10, 2));
  gate.open();
  EXPECT_EQ(take.get(), numbers(10, 2));
  EXPECT_EQ(store.size(), 0u);
  EXPECT_EQ(store.statistics().hits, 1u);
}

// ---- everything at once ---------------------------------------------------------------------------------------------

// Bytes that buffers really hold, never less. One test at a time.
std::atomic<Bytes> witnessed = 0, most_witnessed = 0;

class Witness {
 public:
  Witness() {
    witnessed = most_witnessed = 0;
    buffer_observer = [](Bytes change) {
      const Bytes now = witnessed += change;
      Bytes most = most_witnessed;
      while (now > most && !most_witnessed.compare_exchange_weak(most, now)) {
      }
    };
  }
  ~Witness() { buffer_observer = nullptr; }
};

// A value that says which key it is of, and whether all of it belongs together. Zeros at the end.
std::vector<std::int32_t> stamped(int key, int stamp, std::size_t count) {
  std::vector<std::int32_t> value(count);
  for (std::size_t i = 0; i < count; ++i) value[i] = i * 2 > count ? 0 : key * 1'000'000 + stamp;
  return value;
}
bool is_stamped(int key, const std::vector<std::int32_t>& value) {
  return value.empty() || (value[0] / 1'000'000 == key && value == stamped(key, value[0] % 1'000'000, value.size()));
}

struct Setting {
  Evict rule;
  Bytes memory;
  Bytes disk;  // 0: none
  bool failures = false;
};

void everything_at_once(const Setting& setting, std::uint64_t seed, int operations) {
  SCOPED_TRACE(std::string(name(setting.rule)) + ", memory " + std::to_string(setting.memory) + ", disk " +
               std::to_string(setting.disk));
  const TemporaryFolder folder;
  const TrimCodec trim(2, 3);
  const Codec* const codecs[] = {nullptr, &trim, &codec("small"), &codec("exact")};
  WatchedFiles files;
  files.most_at_once = 64;
  std::atomic<std::uint64_t> counter = seed;
  std::atomic<bool> failing = setting.failures;
  files.before = [&](FileOperation, const fs::path& path) {
    if (failing && path.extension() == ".value" && Random(counter++).chance(0.05)) throw FileError("test", path, EIO);
  };
  const Witness witness;
  {
    StoreOptions options = with_memory(setting.memory, setting.rule);
    if (setting.disk > 0) options.disk = DiskTier{.folder = folder.path(), .budget = setting.disk};
    options.files = &files;
    Store store(options);
    const auto trying = [](const auto& operation) {
      try {
        operation();
      } catch (const DoesNotFit&) {
      } catch (const NotStored&) {
      } catch (const DiskError&) {
      }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        Random random(seed * 100 + static_cast<std::uint64_t>(t));
        for (int i = 0; i < operations; ++i) {
          const int key = static_cast<int>(random.below(6));
          const std::vector<Key> several = {key, random.below(6), random.below(6)};
          const std::uint64_t what = random.below(100);
          trying([&] {
            if (what < 40) {
              store.put(key, stamped(key, t * 10'000 + i, random.below(40)),
                        {.cost = static_cast<double>(random.below(9)), .codec = codecs[random.below(4)]});
            } else if (what < 60) {
              EXPECT_TRUE(is_stamped(key, store.get(key).to_vector<std::int32_t>()));
            } else if (what < 72) {
              EXPECT_TRUE(is_stamped(key, store.take(key).to_vector<std::int32_t>()));
            } else if (what < 78) {
              store.erase(key);
            } else if (what < 86) {
              store.prefetch(several);
            } else if (what < 94) {
              store.offload(several);
            } else if (what < 96) {
              store.wait();
            } else if (what < 97) {
              store.clear();
            } else {
              EXPECT_LE(store.bytes(), setting.memory);
              EXPECT_LE(store.bytes(TierKind::disk), setting.disk);
              if (store.contains(key)) (void)store.describe(key);
            }
          });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();

    std::vector<Key> all;
    for (int key = 0; key < 6; ++key) all.push_back(key);
    store.offload(all);  // ends every prefetch
    failing = false;
    trying([&] { store.wait(); });
    const StoreStatistics statistics = store.statistics();
    EXPECT_LE(statistics.peak_bytes, setting.memory);
    EXPECT_LE(statistics.peak_disk_bytes, setting.disk);
    Bytes in_memory = 0, on_disk = 0;
    for (const Key& key : all) {
      const auto value = store.find(key);
      if (!value) continue;
      EXPECT_TRUE(is_stamped(std::stoi(key.text), value->to_vector<std::int32_t>()));
      const Description description = store.describe(key);
      (description.tier == TierKind::memory ? in_memory : on_disk) += description.bytes;
    }
    EXPECT_EQ(statistics.in_memory + statistics.on_disk, store.size());
    EXPECT_EQ(statistics.bytes, in_memory);
    EXPECT_EQ(witnessed, in_memory);
    if (!setting.failures) {
      EXPECT_EQ(statistics.disk_bytes, on_disk + 32 * static_cast<Bytes>(statistics.on_disk));
      EXPECT_EQ(statistics.disk_bytes, files.bytes());
    }
    store.clear();
    EXPECT_EQ(store.bytes(), 0);
    EXPECT_EQ(store.bytes(TierKind::disk), 0);
    EXPECT_EQ(files.bytes(), 0);
    store.prefetch(all);
    store.offload(all);
  }
  EXPECT_EQ(witnessed, 0);
  EXPECT_LE(most_witnessed, setting.memory);
  EXPECT_LE(files.peak(), setting.disk);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(StoreThread, ManyThreadsOnFewKeysNeverPassTheBudgets) {
  for (std::uint64_t seed = 0; seed < testing::cases(2); ++seed) {
    for (const Evict rule : {Evict::oldest, Evict::cheapest, Evict::nothing}) {
      everything_at_once({rule, 300, 0}, seed, 300);
      everything_at_once({rule, 300, 500}, seed, 300);
      everything_at_once({rule, 100, 200}, seed, 200);
      everything_at_once({rule, 0, 300}, seed, 100);
      everything_at_once({rule, 300, largest_bytes}, seed, 200);
    }
  }
}

TEST(StoreThread, ManyThreadsOnFewKeysNeverPassTheBudgetsOfADiskThatFails) {
  for (std::uint64_t seed = 0; seed < testing::cases(2); ++seed) {
    for (const Evict rule : {Evict::oldest, Evict::cheapest, Evict::nothing}) {
      everything_at_once({rule, 300, 500, true}, seed, 200);
      everything_at_once({rule, 100, largest_bytes, true}, seed, 200);
    }
  }
}

TEST(StoreThread, ManyThreadsThatEachNeedAllOfMemoryTakeTurns) {
  const TemporaryFolder folder;
  for (const bool disk : {false, true}) {
    WatchedFiles files;
    StoreOptions options = with_memory(10 * ten);
    if (disk) options.disk = DiskTier{.folder = folder.path(), .budget = 10 * ten + 32};
    options.files = &files;
    Store store(options);
    std::vector<std::thread> threads;
    std::atomic<int> stored = 0;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          if (store.put(t * 1000 + i, numbers(100, t)) == PutResult::stored) ++stored;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(stored, 200);
    EXPECT_EQ(store.size(), disk ? 2u : 1u);
  }
}

TEST(StoreThread, AStoreCanEndWithWorkLeft) {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) {
    WatchedFiles files;
    Store store(with_disk(folder, 5 * ten, files));
    std::vector<Key> all;
    for (int key = 0; key < 10; ++key) {
      store.put(key, numbers(10, key));
      all.push_back(key);
    }
    store.prefetch(all);
    if (i % 2 == 0) store.offload(all);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace reprise::store_thread_test
