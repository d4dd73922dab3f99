// Values that outlive their store: kept folders, whole or damaged, and stores that end in the middle of something.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "reprise/store/store.h"
#include "store/store_support.h"
#include "support/child.h"

namespace reprise {
namespace {

using testing::expect_contains;
using testing::FileOperation;
using testing::message_of;
using testing::numbers;
using testing::on_disk;
using testing::TemporaryFolder;
using testing::tens;
using testing::WatchedFiles;

namespace fs = std::filesystem;

StoreOptions keeping(const TemporaryFolder& folder, Bytes memory = 1 << 20, FileSystem* files = nullptr) {
  return {.memory = memory, .disk = DiskTier{.folder = folder.path(), .keep = true}, .files = files};
}

std::vector<fs::path> kept_files(const TemporaryFolder& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder.path() / "reprise-kept")) {
    if (entry.path().extension() == ".value") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(StoreKeep, ValuesAreThereAgainWithTheirShapeCodecAndCost) {
  const TemporaryFolder folder;
  {
    Store store(keeping(folder));
    store.put("plain", ArrayView(numbers(6), {2, 3}), 2.5);
    store.put("half", numbers(8), PutOptions{.codec = &codec("half")});
    store.put("gone", numbers(3));
    store.erase("gone");
  }
  Store store(keeping(folder));
  EXPECT_EQ(store.size(), 2u);
  EXPECT_TRUE(on_disk(store, "plain"));
  EXPECT_EQ(store.get("plain").to_vector<float>(), numbers(6));
  EXPECT_EQ(store.get("plain").shape(), (Shape{2, 3}));
  EXPECT_EQ(store.describe("plain").cost, 2.5);
  EXPECT_EQ(store.describe("half").codec, "half");
  EXPECT_EQ(store.get("half").to_vector<float>(), numbers(8));
  store.clear();
  EXPECT_TRUE(kept_files(folder).empty());
  EXPECT_EQ(store.bytes(TierKind::disk), 0);
}

TEST(StoreKeep, TheFileStaysWhenItsValueIsReadAheadAndGoesWithTheValue) {
  const TemporaryFolder folder;
  Store store(keeping(folder, tens(2)));
  const std::vector<Key> keys{1, 2};
  for (int k = 1; k <= 2; ++k) store.put(k, numbers(10, k));
  store.offload(keys);
  store.wait();
  const Bytes all = store.bytes(TierKind::disk);
  store.prefetch(keys);
  store.wait();
  EXPECT_FALSE(on_disk(store, 1));
  EXPECT_EQ(kept_files(folder).size(), 2u);
  EXPECT_EQ(store.bytes(TierKind::disk), all);
  store.offload(keys);  // nothing is written again
  store.wait();
  EXPECT_TRUE(on_disk(store, 1));
  EXPECT_EQ(store.bytes(TierKind::disk), all);
  EXPECT_EQ(store.bytes(), 0);
  store.prefetch(keys);
  store.wait();
  EXPECT_EQ(store.take(1).to_vector<float>(), numbers(10, 1));
  EXPECT_EQ(kept_files(folder).size(), 1u);
  EXPECT_EQ(store.bytes(TierKind::disk), all / 2);
}

TEST(StoreKeep, AFolderBelongsToOneStoreAtATime) {
  const TemporaryFolder folder;
  const Store store(keeping(folder));
  expect_contains(message_of<DiskError>([&] { Store other(keeping(folder)); }), "in use by another store");
}

TEST(StoreKeep, OfTwoFilesOfOneKeyTheNewerCounts) {
  const TemporaryFolder folder;
  {
    Store store(keeping(folder, 0));
    store.put("a", numbers(5, 1));
  }
  const fs::path old = kept_files(folder).at(0);
  fs::copy_file(old, folder.path() / "old");
  {
    Store store(keeping(folder, 0));
    store.put("a", numbers(5, 2));
  }
  fs::rename(folder.path() / "old", old);
  Store store(keeping(folder));
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(5, 2));
  EXPECT_EQ(kept_files(folder).size(), 1u);
}

TEST(StoreKeep, WhatIsForeignOrDamagedIsAnErrorWithTheNameOfTheFile) {
  const TemporaryFolder folder;
  {
    Store store(keeping(folder));
    store.put("a", numbers(5));
  }
  const fs::path file = kept_files(folder).at(0), foreign = folder.path() / "reprise-kept" / "notes.txt";
  const auto said = [&] { return message_of<DiskError>([&] { Store store(keeping(folder)); }); };
  std::ofstream(foreign) << "mine";
  expect_contains(said(), foreign.string());
  EXPECT_TRUE(fs::exists(foreign));
  fs::remove(foreign);

  const auto size = fs::file_size(file);
  fs::resize_file(file, size - 1);
  expect_contains(said(), file.string());
  fs::resize_file(file, 10);
  expect_contains(said(), file.string());
  EXPECT_TRUE(fs::exists(file)) << "what cannot be read is not removed";
}

// A byte of a file is changed, or the file is cut or longer: the store is refused, or the value is, or it is right.
TEST(StoreKeep, FuzzedFilesGiveErrorsAndNeverAWrongValue) {
  const int rounds = std::getenv("REPRISE_LONG") ? 20'000 : 400;
  const TemporaryFolder folder;
  {
    Store store(keeping(folder));
    store.put("key", ArrayView(numbers(12), {3, 4}), PutOptions{.cost = 3, .codec = &codec("zstd")});
  }
  const fs::path file = kept_files(folder).at(0);
  std::string good;
  {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    good = text.str();
  }
  std::mt19937_64 random(std::getenv("REPRISE_LONG") ? std::random_device()() : 7);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string bad = good;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      switch (random() % 4) {
        case 0: bad.resize(random() % (bad.size() + 1)); break;
        case 1: bad.append(random() % 9, 'x'); break;
        default:
          if (!bad.empty()) bad[random() % bad.size()] = static_cast<char>(random());
      }
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    try {
      Store store(keeping(folder));
      for (const Key key : {"key"}) {
        if (!store.contains(key)) continue;
        EXPECT_EQ(store.get(key).to_vector<float>(), numbers(12));
      }
    } catch (const Error& error) {
      ++refused;
      expect_contains(error.what(), file.string());
    }
    if (!fs::exists(file)) std::ofstream(file, std::ios::binary) << good;
  }
  EXPECT_GT(refused, rounds / 2);
}

// Each operation of the file system in turn is the last one of a process.
TEST(StoreKeep, AProcessThatIsKilledAtAnyOperationLeavesWholeValues) {
  const std::vector<float> first = numbers(10, 1), second = numbers(10, 2);
  bool finished = false;
  for (int last = 0; !finished; ++last) {
    ASSERT_LT(last, 200);
    const TemporaryFolder folder;
    const int code = testing::in_child([&] {
      WatchedFiles files;
      int operations = 0;
      files.before = [&](auto, auto&) {
        if (operations++ == last) ::raise(SIGKILL);
      };
      Store store(keeping(folder, 0, &files));  // straight to disk, so that everything happens in this thread
      store.put("a", first);
      store.put("b", first);
      store.put("a", second);
      store.erase("b");
      return 0;
    });
    finished = code == 0;
    ASSERT_TRUE(finished || code == 128 + SIGKILL) << code;
    Store store(keeping(folder));
    for (const char* key : {"a", "b"}) {
      const auto value = store.find(key);
      if (value) EXPECT_TRUE(value->to_vector<float>() == first || value->to_vector<float>() == second) << last;
    }
    if (finished) EXPECT_EQ(store.get("a").to_vector<float>(), second);
  }
}

}  // namespace
}  // namespace reprise
