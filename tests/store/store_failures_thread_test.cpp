// The disk tier when operations of the file system fail while the store's own thread is at work, and locks that several
// threads want.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "reprise/store/store.h"
#include "store/store_support.h"
#include "support/cases.h"
#include "support/random_trace.h"
#include "support/temporary_folder.h"

namespace reprise::store_failures_thread_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_contains;
using testing::fail_next;
using testing::FileOperation;
using testing::in_memory;
using testing::keys;
using testing::message_of;
using testing::numbers;
using testing::on_disk;
using testing::Random;
using testing::store_folders;
using testing::TemporaryFolder;
using testing::WatchedFiles;

constexpr Bytes ten = 40;

StoreOptions with_disk(const fs::path& folder, Bytes memory, FileSystem* files = nullptr) {
  return {.memory = memory, .disk = DiskTier{.folder = folder}, .remember = remember::all(), .files = files};
}

TEST(StoreFailures, KeepsAValueWhoseOffloadFailedAndTellsOnce) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Store store(with_disk(folder.path(), 4 * ten, &files));
  for (int i = 0; i < 3; ++i) store.put(i, numbers(10, i));
  fail_next(files, FileOperation::write, ENOSPC, 2);
  store.offload(keys({0, 1, 2}));
  expect_contains(message_of<DiskError>([&] { store.wait(); }), "\"0\"");
  store.wait();
  EXPECT_TRUE(in_memory(store, 0));
  EXPECT_TRUE(in_memory(store, 1));
  EXPECT_TRUE(on_disk(store, 2));
  EXPECT_EQ(store.statistics().evictions, 1u);
  store.offload(keys({0}));
  store.wait();
  EXPECT_TRUE(on_disk(store, 0));
}

TEST(StoreFailures, LeavesOnDiskWhatCannotBePrefetched) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Store store(with_disk(folder.path(), 2 * ten, &files));
  for (int i = 0; i < 4; ++i) store.put(i, numbers(10, i));
  store.erase(2);
  store.erase(3);
  fail_next(files, FileOperation::read, EIO);
  store.prefetch(keys({0, 1}));
  store.wait();
  EXPECT_TRUE(on_disk(store, 0));
  EXPECT_TRUE(in_memory(store, 1));
  EXPECT_EQ(store.bytes(), ten);
  EXPECT_EQ(store.get(0).to_vector<float>(), numbers(10));
}

// ---- every operation fails once -------------------------------------------------------------------------------------

// Throws in the place of one operation, counted from the beginning.
struct FailureAt {
  explicit FailureAt(int number) : operation(number) {}
  const int operation;
  int seen = 0;
};

void fail_at(WatchedFiles& files, FailureAt& failure) {
  files.before = [&](FileOperation, const fs::path& path) {
    if (failure.seen++ != failure.operation) return;
    throw FileError("test", path, EIO);
  };
}

// A fixed sequence that uses everything; what fails is done again, once. `expected` is what a store without failures
// has at that time; nothing is ever dropped here, so nothing may be missing.
class Sequence {
 public:
  Sequence(const fs::path& folder, WatchedFiles& files) : folder_(folder), files_(files) {}

  void run() {
    std::unique_ptr<Store> store;
    again_if_it_fails([&] { store = std::make_unique<Store>(with_disk(folder_, 3 * ten, &files_)); });
    store_ = store.get();
    for (int i = 0; i < 7; ++i) put(i, numbers(10, i));
    put("half", {0.5f, 1, 2, 3, 4, 5, 6, 7}, &codec("half"));
    put("large", numbers(50, 8));
    put(6, numbers(10, 9));   // in the place of one in memory
    put(1, numbers(10, 10));  // in the place of one on disk
    put("large", numbers(40, 11));
    for (int i = 0; i < 7; ++i) get(i);
    get("half");
    take(0);
    take("large");
    take(6);
    erase(2);
    offload({1, 3, "half"});
    prefetch({4, 5});
    get("half");
    put(8, numbers(25, 12));  // several leave
    prefetch({"half"});
    erase("half");
    check();
    expected_.clear();
    store_->clear();
    check();
    put("last", numbers(40));
    check();
    store.reset();
  }

  [[nodiscard]] int failures() const { return failures_; }

 private:
  void again_if_it_fails(const std::function<void()>& operation) {
    try {
      operation();
    } catch (const DiskError&) {
      ++failures_;
      check();
      operation();
    }
    check();
  }

  void put(const Key& key, const std::vector<float>& value, const Codec* codec = nullptr) {
    again_if_it_fails([&] {
      EXPECT_EQ(store_->put(key, value, {.codec = codec}), PutResult::stored);
      expected_[key.text] = value;
    });
  }
  void get(const Key& key) {
    again_if_it_fails([&] { EXPECT_EQ(store_->get(key).to_vector<float>(), expected_.at(key.text)); });
  }
  void take(const Key& key) {
    again_if_it_fails([&] {
      EXPECT_EQ(store_->take(key).to_vector<float>(), expected_.at(key.text));
      expected_.erase(key.text);
    });
  }
  void erase(const Key& key) {
    expected_.erase(key.text);
    EXPECT_TRUE(store_->erase(key));
    check();
  }
  void offload(std::vector<Key> keys) {
    again_if_it_fails([&] {
      store_->offload(keys);
      store_->wait();
    });
    for (const Key& key : keys) EXPECT_TRUE(on_disk(*store_, key));
  }
  void prefetch(std::vector<Key> keys) {
    store_->prefetch(keys);
    store_->wait();
    check();
  }

  // Without reading files: that would be an operation that can fail.
  void check() {
    if (!store_) return;
    const StoreStatistics statistics = store_->statistics();
    EXPECT_EQ(store_->size(), expected_.size());
    Bytes in_memory = 0, on_disk = 0;
    for (const auto& [key, value] : expected_) {
      ASSERT_TRUE(store_->contains(key)) << key;
      const Description description = store_->describe(key);
      (description.tier == TierKind::memory ? in_memory : on_disk) +=
          description.bytes + (description.tier == TierKind::disk ? 32 : 0);
    }
    EXPECT_EQ(statistics.bytes, in_memory);
    EXPECT_LE(statistics.peak_bytes, 3 * ten);
    EXPECT_EQ(statistics.dropped, 0u);
    // More only for a file that could not be removed yet.
    EXPECT_GE(statistics.disk_bytes, on_disk);
    EXPECT_EQ(statistics.disk_bytes, files_.bytes());
  }

  fs::path folder_;
  WatchedFiles& files_;
  Store* store_ = nullptr;
  std::map<std::string, std::vector<float>> expected_;
  int failures_ = 0;
};

TEST(StoreFailures, LosesNothingWhateverOperationFailsOnce) {
  int operations = 0;
  {
    const TemporaryFolder folder;
    WatchedFiles files;
    FailureAt never(-1);
    fail_at(files, never);
    Sequence(folder.path(), files).run();
    operations = never.seen;
    EXPECT_TRUE(store_folders(folder.path()).empty());
  }
  EXPECT_GT(operations, 100);
  int failures = 0;
  for (int i = 0; i < operations && !HasFailure(); ++i) {
    const TemporaryFolder folder;
    WatchedFiles files;
    FailureAt failure(i);
    fail_at(files, failure);
    SCOPED_TRACE("failure at operation " + std::to_string(i));
    Sequence sequence(folder.path(), files);
    sequence.run();
    EXPECT_GT(failure.seen, i);
    failures += sequence.failures();
    EXPECT_LE(sequence.failures(), 1);
    // Only a failure in the end of the store may leave something, and the next one removes that.
    if (i < operations - 3) {
      EXPECT_TRUE(store_folders(folder.path()).empty());
    }
    { Store next(with_disk(folder.path(), ten)); }
    EXPECT_TRUE(store_folders(folder.path()).empty());
  }
  EXPECT_GT(failures, operations / 3);
}

// Whatever fails, and however often: what is there is right, and the sums are.
TEST(StoreFailures, StaysConsistentWhenOperationsFailAtRandom) {
  const Evict rules[] = {Evict::oldest, Evict::cheapest, Evict::nothing};
  for (std::uint64_t seed = 0; seed < testing::cases(20) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed), failures(seed + 1000);
    const TemporaryFolder folder;
    WatchedFiles files;
    files.most_at_once = 50;
    StoreOptions options = with_disk(folder.path(), static_cast<Bytes>(random.below(200)), &files);
    options.disk->budget = static_cast<Bytes>(100 + random.below(700));
    options.evict = rules[seed % 3];
    if (random.chance(0.5)) options.codec = &codec("small");
    std::atomic<bool> failing = false;
    files.before = [&](FileOperation, const fs::path& path) {
      if (failing && failures.chance(0.1)) throw FileError("test", path, EIO);
    };
    Store store(options);
    std::map<std::string, std::vector<std::int32_t>> last;
    const auto trying = [](const auto& operation) {
      try {
        operation();
      } catch (const DiskError&) {
      } catch (const NotStored&) {
      } catch (const DoesNotFit&) {
      }
    };
    for (int i = 0; i < 150 && !HasFailure(); ++i) {
      const std::string key = std::to_string(random.below(6));
      const std::vector<Key> moved = {key, std::to_string(random.below(6))};
      const std::uint64_t what = random.below(10);
      failing = true;
      trying([&] {
        if (what < 5) {
          const std::vector<std::int32_t> value(random.below(40), i);
          if (store.put(key, value, static_cast<double>(random.below(5))) == PutResult::stored) last[key] = value;
        } else if (what < 7) {
          EXPECT_EQ(store.get(key).to_vector<std::int32_t>(), last[key]);
        } else if (what < 8) {
          EXPECT_EQ(store.take(key).to_vector<std::int32_t>(), last[key]);
        } else if (what < 9) {
          store.prefetch(moved);
          store.wait();
        } else {
          store.erase(key);
        }
      });
      store.offload(moved);  // and no prefetch stays behind
      trying([&] { store.wait(); });
      failing = false;

      const StoreStatistics statistics = store.statistics();
      EXPECT_LE(statistics.peak_bytes, options.memory);
      EXPECT_LE(statistics.peak_disk_bytes, options.disk->budget);
      EXPECT_GE(statistics.disk_bytes, files.bytes());  // more for a part of a file that could not be removed yet
      Bytes bytes = 0;
      for (const auto& [known, value] : last) {
        if (!store.contains(known)) continue;
        EXPECT_EQ(store.get(known).to_vector<std::int32_t>(), value);
        if (in_memory(store, known)) bytes += store.describe(known).bytes;
      }
      EXPECT_EQ(statistics.bytes, bytes);
    }
    EXPECT_LE(files.peak(), options.disk->budget);
    store.clear();
    EXPECT_EQ(store.bytes(), 0);
    EXPECT_EQ(files.bytes(), 0);
  }
}

// ---- locks ----------------------------------------------------------------------------------------------------------

TEST(StoreFailures, ALockHasOneHolderAlsoWhenHoldersRemoveTheFile) {
  const TemporaryFolder folder;
  std::atomic<int> holders = 0, times = 0;
  const std::unique_ptr<Folder> open = FileSystem::machine().open_folder(folder.path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        const auto lock = open->try_lock("lock");
        if (!lock) continue;
        EXPECT_EQ(++holders, 1);
        EXPECT_TRUE(fs::exists(folder / "lock"));
        ++times;
        --holders;
        open->remove_file("lock");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(times, 0);
}

}  // namespace
}  // namespace reprise::store_failures_thread_test
