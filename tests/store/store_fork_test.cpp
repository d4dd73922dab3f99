// Stores at fork(): what a child may do with its copy, and that its parent does not notice. The tests also run in
// builds that cannot follow a fork with threads, so their names do not speak of those.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <set>
#include <string>

#include "reprise/store/store.h"
#include "store/store_support.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace reprise::store_fork_test {
namespace {

namespace fs = std::filesystem;
using testing::code_of;
using testing::Ending;
using testing::FileOperation;
using testing::Gate;
using testing::HookedCodec;
using testing::in_child;
using testing::in_memory;
using testing::numbers;
using testing::on_disk;
using testing::start_child;
using testing::TemporaryFolder;
using testing::WatchedFiles;

constexpr Bytes ten = 40;

StoreOptions with_disk(const TemporaryFolder& folder, Bytes memory, FileSystem* files = nullptr) {
  return {.memory = memory, .disk = DiskTier{.folder = folder.path()}, .remember = remember::all(), .files = files};
}

bool has(Store& store, const Key& key, const std::vector<float>& expected) {
  const Array array = store.get(key);
  const auto bytes = std::as_bytes(std::span(expected));
  return std::ranges::equal(array.data(), bytes);
}

std::set<std::string> files_in(const TemporaryFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) names.insert(entry.path().string());
  return names;
}

const std::vector<float> old_numbers = numbers(10, 1), new_numbers = numbers(10, 2);

// "old" on disk and "new" in memory.
struct OnBoth {
  TemporaryFolder folder;
  Store store;
  explicit OnBoth(FileSystem* files = nullptr) : store(with_disk(folder, ten, files)) {
    store.put("old", old_numbers);
    store.put("new", new_numbers);
  }
  void expect_as_it_was() {
    EXPECT_TRUE(on_disk(store, "old"));
    EXPECT_TRUE(has(store, "old", old_numbers));
    EXPECT_TRUE(has(store, "new", new_numbers));
  }
};

// ---- files ----------------------------------------------------------------------------------------------------------

TEST(StoreFork, AChildThatDestroysItsStoreLeavesItsParentsFilesAlone) {
  OnBoth both;
  const auto before = files_in(both.folder);
  EXPECT_EQ(in_child([&] {
              both.store.~Store();
              return 0;
            }),
            0);
  EXPECT_EQ(files_in(both.folder), before);
  both.expect_as_it_was();
}

TEST(StoreFork, AChildWithAGlobalStoreExitsAndLeavesItsParentsFilesAlone) {
  const TemporaryFolder folder;
  static std::unique_ptr<Store> store;  // destroyed by exit
  store = std::make_unique<Store>(with_disk(folder, ten));
  store->put("old", old_numbers);
  store->put("new", new_numbers);
  store->prefetch(std::vector<Key>{"new"});
  store->wait();
  const auto before = files_in(folder);
  EXPECT_EQ(in_child([] { return 3; }, Ending::by_exit), 3);
  EXPECT_EQ(files_in(folder), before);
  EXPECT_TRUE(has(*store, "old", old_numbers));
  store.reset();
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(StoreFork, AChildReadsWhatIsInMemoryAndWhatIsOnDisk) {
  OnBoth both;
  EXPECT_EQ(
      in_child([&] { return has(both.store, "old", old_numbers) && has(both.store, "new", new_numbers) ? 0 : 1; }), 0);
}

TEST(StoreFork, WhateverAChildErasesTakesAndReplacesIsStillThereForItsParent) {
  OnBoth both;
  const auto before = files_in(both.folder);
  const int code = in_child([&] {
    (void)both.store.take("old");
    both.store.put("new", old_numbers);
    both.store.put("newer", numbers(10, 3));
    both.store.erase("new");
    both.store.clear();
    const bool empty = both.store.size() == 0;
    both.store.~Store();
    return empty ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(files_in(both.folder), before);
  both.expect_as_it_was();
}

TEST(StoreFork, WhatAChildMovesToDiskGoesIntoAFolderOfItsOwnWhichItRemoves) {
  OnBoth both;
  const auto before = files_in(both.folder);
  const int code = in_child([&] {
    const auto store = std::make_unique<Store>(with_disk(both.folder, ten));  // would remove folders of the dead
    both.store.put("newest", numbers(10, 3));
    if (!on_disk(both.store, "new") || !has(both.store, "new", new_numbers)) return 1;
    const auto now = files_in(both.folder);
    if (!std::ranges::includes(now, before)) return 2;
    if (now.size() != before.size() + 5) return 3;  // a folder, a lock and a file; and the folder of the other store
    both.store.~Store();
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(files_in(both.folder), before);
  both.expect_as_it_was();
}

TEST(StoreFork, AValueWhoseFileTheParentHasRemovedIsAnErrorThatNamesTheFile) {
  OnBoth both;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = start_child([&] {
    char ready = 0;
    if (::read(pipe[0], &ready, 1) != 1) return 1;
    try {
      (void)both.store.get("old");
    } catch (const DiskError& error) {
      return std::string(error.what()).find(".value: No such file") != std::string::npos ? 0 : 2;
    }
    return 3;
  });
  both.store.erase("old");
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  EXPECT_EQ(code_of(child), 0);
}

TEST(StoreFork, AChildsChildIsNoDifferent) {
  OnBoth both;
  const auto before = files_in(both.folder);
  const int code = in_child([&] {
    both.store.put("newest", numbers(10, 3));  // "new" goes into a folder of the child's
    const auto mine = files_in(both.folder);
    const int inner = in_child([&] {
      if (!has(both.store, "old", old_numbers) || !has(both.store, "new", new_numbers)) return 1;
      both.store.clear();
      both.store.~Store();
      return 0;
    });
    if (inner != 0 || files_in(both.folder) != mine) return 2;
    if (!has(both.store, "new", new_numbers)) return 3;
    both.store.~Store();
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(files_in(both.folder), before);
}

// ---- in the background ----------------------------------------------------------------------------------------------

TEST(StoreFork, WhatAChildAsksForInTheBackgroundIsDone) {
  OnBoth both;
  both.store.prefetch(std::vector<Key>{"new"});
  both.store.wait();
  const int code = in_child([&] {
    both.store.wait();
    both.store.offload(std::vector<Key>{"new"});
    both.store.wait();
    if (!on_disk(both.store, "new")) return 1;
    both.store.prefetch(std::vector<Key>{"old"});
    both.store.wait();
    if (!in_memory(both.store, "old")) return 2;
    both.store.~Store();
    return 0;
  });
  EXPECT_EQ(code, 0);
  both.expect_as_it_was();
}

// A value is on its way to disk (or back) when the process is forked.
void fork_in_the_middle(FileOperation kind, const Key& key, const char* where_in_the_child,
                        const std::function<void(Store&)>& ask) {
  WatchedFiles files;
  OnBoth both(&files);
  Gate gate;
  both.store.offload(std::vector<Key>{"new"});
  both.store.wait();
  both.store.put("newest", numbers(10, 3));
  files.before = [&](FileOperation operation, const fs::path& path) {
    if (operation == kind && path.extension() == ".value") gate.pass();
  };
  if (key.text != "newest") both.store.erase("newest");
  gate.close();
  ask(both.store);
  gate.await();
  const int code = in_child([&] {
    files.before = [](auto, auto&) {};
    if (!both.store.contains(key)) return 1;
    (void)both.store.get(key);
    both.store.wait();  // it is done again
    if (name(both.store.describe(key).tier) != std::string(where_in_the_child)) return 2;
    both.store.put("another", numbers(10, 4));
    both.store.put("and another", numbers(10, 5));
    both.store.put(key, numbers(10, 6));
    both.store.put("the last", numbers(10, 7));
    if (!has(both.store, "another", numbers(10, 4)) || !has(both.store, key, numbers(10, 6))) return 3;
    both.store.clear();
    if (both.store.bytes() != 0 || both.store.bytes(TierKind::disk) != 0) return 4;
    both.store.~Store();
    return 0;
  });
  gate.open();
  EXPECT_EQ(code, 0);
  both.store.wait();
  EXPECT_TRUE(has(both.store, "old", old_numbers));
  EXPECT_TRUE(has(both.store, "new", new_numbers));
}

TEST(StoreFork, AnOffloadThatIsUnderWayIsDoneAgainInTheChild) {
  fork_in_the_middle(FileOperation::write, "newest", "disk",
                     [](Store& store) { store.offload(std::vector<Key>{"newest"}); });
}

TEST(StoreFork, APrefetchThatIsUnderWayIsDoneAgainInTheChild) {
  fork_in_the_middle(FileOperation::read, "new", "memory",
                     [](Store& store) { store.prefetch(std::vector<Key>{"new"}); });
}

// ---- others at work -------------------------------------------------------------------------------------------------

TEST(StoreFork, BytesThatAnotherThreadHadReservedAreFreeInTheChild) {
  HookedCodec codec(reprise::codec("exact"));
  Gate gate;
  codec.encoding = [&] { gate.pass(); };
  Store store({.memory = ten, .remember = remember::all(), .codec = &codec});
  gate.close();
  auto put = std::async(std::launch::async, [&] { return store.put("theirs", old_numbers); });
  gate.await();
  const int code = in_child([&] {
    codec.encoding = [] {};
    if (store.bytes() != 0) return 1;
    return store.put("mine", new_numbers) == PutResult::stored && has(store, "mine", new_numbers) ? 0 : 2;
  });
  gate.open();
  EXPECT_EQ(code, 0);
  EXPECT_EQ(put.get(), PutResult::stored);
}

TEST(StoreFork, AValueThatAnotherThreadIsReadingCanBeReplacedInTheChild) {
  HookedCodec codec(reprise::codec("exact"));
  Gate gate;
  codec.decoding = [&] { gate.pass(); };
  Store store({.memory = ten, .remember = remember::all(), .codec = &codec});
  store.put("one", old_numbers);
  gate.close();
  auto get = std::async(std::launch::async, [&] { return has(store, "one", old_numbers); });
  gate.await();
  const int code = in_child([&] {
    codec.decoding = [] {};
    if (store.put("one", new_numbers) != PutResult::stored || !has(store, "one", new_numbers)) return 1;
    store.erase("one");
    return store.bytes() == 0 ? 0 : 2;
  });
  gate.open();
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(get.get());
}

TEST(StoreFork, AHundredChildrenWhileOthersWork) {
#ifdef REPRISE_SANITIZED
  GTEST_SKIP() << "the address sanitizer's own allocator does not survive a fork while other threads are in it";
#endif
  const TemporaryFolder folder;
  Store store(with_disk(folder, 4 * ten));
  std::atomic<bool> stop = false;
  const auto work = [&](int seed) {
    for (int i = 0; !stop; ++i) {
      const Key key = (i * 7 + seed) % 11;
      store.put(key, numbers(10, i));
      (void)store.find((i * 5 + seed) % 11);
      store.prefetch(std::vector<Key>{(i * 3) % 11, (i * 3 + 1) % 11});
      store.offload(std::vector<Key>{(i * 3 + 2) % 11});
    }
  };
  auto one = std::async(std::launch::async, work, 1), two = std::async(std::launch::async, work, 2);
  int failed = 0;
  for (int i = 0; i < 100 && failed == 0; ++i) {
    failed = in_child([&] {
      for (int k = 0; k < 22; ++k) {
        store.put(k, numbers(10, k));
        store.prefetch(std::vector<Key>{k - 5});
        if (!has(store, k, numbers(10, k))) return 1;
      }
      store.wait();
      store.~Store();
      return 0;
    });
  }
  stop = true;
  one.get();
  two.get();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace reprise::store_fork_test
