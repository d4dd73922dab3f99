// The disk tier when things go wrong: every operation of the file system fails at some time, folders vanish, files are
// changed, processes are killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "reprise/store/store.h"
#include "store/store_support.h"
#include "support/cases.h"
#include "support/random_trace.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using testing::FileOperation;
using testing::in_memory;
using testing::message_of;
using testing::numbers;
using testing::on_disk;
using testing::Random;
using testing::TemporaryFolder;
using testing::WatchedFiles;

constexpr Bytes ten = 40, file_of_ten = 72;

StoreOptions with_disk(const fs::path& folder, Bytes memory, FileSystem* files = nullptr) {
  return {.memory = memory, .disk = DiskTier{.folder = folder}, .remember = remember::all(), .files = files};
}

std::vector<Key> keys(std::initializer_list<Key> keys) {
  return keys;
}

// Folders of stores, and the files of values in all of them.
std::vector<fs::path> store_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
  return found;
}
std::vector<fs::path> value_files(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".value") found.push_back(entry.path());
  }
  return found;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

// Fails the next operations of this kind.
void fail_next(WatchedFiles& files, FileOperation kind, int code, int times = 1) {
  files.before = [&files, kind, code, left = times](FileOperation operation, const fs::path& path) mutable {
    if (operation == kind && left > 0) {
      --left;
      throw FileError("test", path, code);
    }
  };
}

// ---- files ----------------------------------------------------------------------------------------------------------

TEST(StoreDisk, HasAFolderOfItsOwnAndRemovesItInTheEnd) {
  const TemporaryFolder folder;
  folder.write("mine", "text");
  {
    Store one(with_disk(folder.path(), ten)), other(with_disk(folder.path(), ten));
    EXPECT_EQ(store_folders(folder.path()).size(), 3u);
    for (int i = 0; i < 3; ++i) one.put(i, numbers(10, i));
    EXPECT_EQ(value_files(folder.path()).size(), 2u);
  }
  EXPECT_EQ(store_folders(folder.path()).size(), 1u);
  EXPECT_EQ(folder.read("mine"), "text");
}

TEST(StoreDisk, RemovesFilesWithTheirValues) {
  const TemporaryFolder folder;
  Store store(with_disk(folder.path(), ten));
  const auto files = [&] { return value_files(folder.path()).size(); };
  for (int i = 0; i < 6; ++i) store.put(i, numbers(10, i));
  EXPECT_EQ(files(), 5u);
  store.erase(0);
  EXPECT_EQ(files(), 4u);
  (void)store.take(1);
  EXPECT_EQ(files(), 3u);
  (void)store.get(2);
  EXPECT_EQ(files(), 3u);
  store.put(2, numbers(1));
  EXPECT_EQ(files(), 3u);  // 2 left the disk, and 5 memory
  store.clear();
  EXPECT_EQ(files(), 0u);
}

TEST(StoreDisk, WritesAndReadsInManySmallSteps) {
  const TemporaryFolder folder;
  WatchedFiles files;
  files.most_at_once = 7;
  Store store(with_disk(folder.path(), ten, &files));
  store.put("large", numbers(100));
  EXPECT_EQ(store.get("large").to_vector<float>(), numbers(100));
  EXPECT_EQ(files.count(FileOperation::write), 5 + 58);
  EXPECT_EQ(files.bytes(), store.bytes(TierKind::disk));
}

TEST(StoreDisk, NoticesAFileThatWasChanged) {
  const TemporaryFolder folder;
  Store store(with_disk(folder.path(), 0));
  store.put("layer 3", numbers(10));
  const fs::path file = value_files(folder.path()).at(0);
  const auto size = fs::file_size(file);
  ASSERT_EQ(size, 72u);
  for (std::uintmax_t place = 0; place < size; ++place) {
    const auto change = [&] {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(place));
      const char byte = static_cast<char>(stream.get());
      stream.seekp(static_cast<std::streamoff>(place));
      stream.put(static_cast<char>(byte ^ 0x10));
    };
    change();
    const std::string message = message_of<DiskError>([&] { (void)store.get("layer 3"); });
    expect_contains(message, "\"layer 3\"");
    expect_contains(message, file.string());
    expect_contains(message, "checksum");
    change();
    EXPECT_EQ(store.get("layer 3").to_vector<float>(), numbers(10));
  }
}

TEST(StoreDisk, NoticesAFileThatWasCutShortOrExchanged) {
  const TemporaryFolder folder;
  Store store(with_disk(folder.path(), 0));
  store.put("a", numbers(10, 1));
  const fs::path a = value_files(folder.path()).at(0);
  store.put("b", numbers(10, 2));
  std::vector<fs::path> both = value_files(folder.path());
  const fs::path b = both[0] == a ? both[1] : both[0];
  fs::resize_file(a, 71);
  expect_contains(message_of<DiskError>([&] { (void)store.get("a"); }), "71 of 72 bytes");
  fs::resize_file(a, 20);
  expect_contains(message_of<DiskError>([&] { (void)store.take("a"); }), "20 of 72 bytes");
  EXPECT_TRUE(store.contains("a"));
  fs::copy_file(b, a, fs::copy_options::overwrite_existing);
  EXPECT_THROW((void)store.get("a"), DiskError);  // a good file, but not this one
  EXPECT_EQ(store.get("b").to_vector<float>(), numbers(10, 2));
}

// ---- folders that cannot be used ------------------------------------------------------------------------------------

TEST(StoreDisk, NamesAFolderThatIsNotThere) {
  const TemporaryFolder folder;
  const std::string message = message_of<DiskError>([&] { Store store(with_disk(folder / "missing", ten)); });
  expect_contains(message, (folder / "missing").string());
  expect_contains(message, "make folder");
  expect_contains(message, "No such file or directory");
  const fs::path file = folder.write("file", "");
  expect_contains(message_of<DiskError>([&] { Store store(with_disk(file, ten)); }), "Not a directory");
}

// What `mistakes` returns, in a process of its own.
int in_a_child(const std::function<int()>& mistakes) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mistakes());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

TEST(StoreDisk, NamesAFolderThatCannotBeWrittenTo) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(in_a_child([&] {
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 100;  // root may write everywhere
              const std::string message = message_of<DiskError>([&] { Store store(with_disk(folder.path(), ten)); });
              const bool says_it = message.find(folder.path().string()) != std::string::npos &&
                                   message.find("Permission denied") != std::string::npos;
              return says_it ? 0 : 1;
            }),
            0);
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(StoreDisk, NamesAFolderOnAFileSystemThatIsReadOnly) {
  const TemporaryFolder folder;
  WatchedFiles files;
  fail_next(files, FileOperation::make_folder, EROFS);
  const std::string message = message_of<DiskError>([&] { Store store(with_disk(folder.path(), ten, &files)); });
  expect_contains(message, folder.path().string());
  expect_contains(message, "Read-only file system");
}

TEST(StoreDisk, LosesOnlyWhatWasInAFolderThatIsDeletedUnderIt) {
  const TemporaryFolder folder;
  {
    Store store(with_disk(folder.path(), 2 * ten));
    for (int i = 0; i < 4; ++i) store.put(i, numbers(10, i));
    fs::remove_all(store_folders(folder.path()).at(0));
    const std::string reading = message_of<DiskError>([&] { (void)store.get(0); });
    expect_contains(reading, "\"0\"");
    expect_contains(reading, "open");
    expect_contains(reading, "No such file or directory");
    EXPECT_THROW((void)store.take(0), DiskError);
    const std::string writing = message_of<DiskError>([&] { store.put("new", numbers(10)); });
    expect_contains(writing, "\"2\"");  // the one that should have moved
    EXPECT_FALSE(store.contains("new"));
    for (int i = 2; i < 4; ++i) EXPECT_EQ(store.get(i).to_vector<float>(), numbers(10, i));
    EXPECT_EQ(store.bytes(), 2 * ten);
    EXPECT_EQ(store.bytes(TierKind::disk), 2 * file_of_ten);
    EXPECT_TRUE(store.erase(0));
    EXPECT_TRUE(store.erase(1));
    EXPECT_EQ(store.bytes(TierKind::disk), 0);
    store.put(2, numbers(10, 7));  // needs no disk
    EXPECT_EQ(store.get(2).to_vector<float>(), numbers(10, 7));
  }
  EXPECT_TRUE(store_folders(folder.path()).empty());
}

TEST(StoreDisk, GivesBackTheBytesOfAFileThatCouldNotBeWritten) {
  const TemporaryFolder folder;
  WatchedFiles files;
  files.most_at_once = 16;
  Store store(with_disk(folder.path(), ten, &files));
  store.put("a", numbers(10));
  for (const FileOperation kind : {FileOperation::create, FileOperation::write, FileOperation::close}) {
    fail_next(files, kind, ENOSPC);
    const std::string message = message_of<DiskError>([&] { store.put("b", numbers(10)); });
    expect_contains(message, "\"a\"");
    expect_contains(message, folder.path().string());
    expect_contains(message, "No space left on device");
    EXPECT_TRUE(value_files(folder.path()).empty());
    EXPECT_EQ(store.bytes(TierKind::disk), 0);
    EXPECT_EQ(store.bytes(), ten);
    EXPECT_TRUE(in_memory(store, "a"));
    EXPECT_FALSE(store.contains("b"));
  }
  EXPECT_EQ(store.statistics().evictions, 0u);
  EXPECT_EQ(store.put("b", numbers(10)), PutResult::stored);
  EXPECT_TRUE(on_disk(store, "a"));
}

TEST(StoreDisk, SurvivesADiskThatIsReallyFull) {
  // A limit on the size of files is the one kind of full disk that every machine has: some of a write succeeds first.
  const TemporaryFolder folder;
  EXPECT_EQ(in_a_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {100, 100};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              int mistakes = 0;
              Store store(with_disk(folder.path(), ten));
              store.put("fits", numbers(17));
              const std::string message = message_of<DiskError>([&] { store.put("does not fit", numbers(18)); });
              if (message.find("File too large") == std::string::npos) ++mistakes;
              if (store.bytes(TierKind::disk) != 100 || value_files(folder.path()).size() != 1) ++mistakes;
              if (store.get("fits").to_vector<float>() != numbers(17)) ++mistakes;
              return mistakes;
            }),
            0);
}

TEST(StoreDisk, CountsAFileThatCannotBeRemovedUntilItIs) {
  const TemporaryFolder folder;
  WatchedFiles files;
  StoreOptions options = with_disk(folder.path(), 0, &files);
  options.disk->budget = 2 * file_of_ten;
  Store store(options);
  store.put("a", numbers(10));
  store.put("b", numbers(10));
  fail_next(files, FileOperation::remove_file, EIO, 2);
  EXPECT_TRUE(store.erase("a"));
  EXPECT_FALSE(store.contains("a"));
  EXPECT_EQ(store.bytes(TierKind::disk), 2 * file_of_ten);
  const std::string message = message_of<DiskError>([&] { store.put("c", numbers(10)); });
  expect_contains(message, "\"c\"");
  EXPECT_TRUE(store.contains("b"));
  EXPECT_EQ(store.put("c", numbers(10)), PutResult::stored);
  EXPECT_TRUE(store.contains("b"));
  EXPECT_EQ(files.peak(), 2 * file_of_ten);

  fail_next(files, FileOperation::remove_file, EIO);
  store.clear();
  EXPECT_EQ(store.bytes(TierKind::disk), 0);  // the second attempt
  EXPECT_TRUE(value_files(folder.path()).empty());
}

TEST(StoreDisk, KeepsAValueWhoseOffloadFailedAndTellsOnceOnAThreadOfItsOwn) {
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

TEST(StoreDisk, LeavesOnDiskWhatCannotBePrefetchedOnAThreadOfItsOwn) {
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
// has at that time; nothing is ever given up for good here, so nothing may be missing.
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
    EXPECT_EQ(statistics.forgotten, 0u);
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

TEST(StoreDisk, LosesNothingWhateverOperationFailsOnceOnAThreadOfItsOwn) {
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
  int told = 0;
  for (int i = 0; i < operations && !HasFailure(); ++i) {
    const TemporaryFolder folder;
    WatchedFiles files;
    FailureAt failure(i);
    fail_at(files, failure);
    SCOPED_TRACE("failure at operation " + std::to_string(i));
    Sequence sequence(folder.path(), files);
    sequence.run();
    EXPECT_GT(failure.seen, i);
    told += sequence.failures();
    EXPECT_LE(sequence.failures(), 1);
    // Only a failure in the end of the store may leave something, and the next one removes that.
    if (i < operations - 3) {
      EXPECT_TRUE(store_folders(folder.path()).empty());
    }
    { Store next(with_disk(folder.path(), ten)); }
    EXPECT_TRUE(store_folders(folder.path()).empty());
  }
  EXPECT_GT(told, operations / 3);
}

// Whatever fails, and however often: what is there is right, and the sums are.
TEST(StoreDisk, StaysConsistentWhenOperationsFailAtRandomOnAThreadOfItsOwn) {
  const GiveUp rules[] = {GiveUp::oldest, GiveUp::cheapest, GiveUp::nothing};
  for (std::uint64_t seed = 0; seed < testing::cases(20) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed), failures(seed + 1000);
    const TemporaryFolder folder;
    WatchedFiles files;
    files.most_at_once = 50;
    StoreOptions options = with_disk(folder.path(), static_cast<Bytes>(random.below(200)), &files);
    options.disk->budget = static_cast<Bytes>(100 + random.below(700));
    options.give_up = rules[seed % 3];
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

// ---- processes ------------------------------------------------------------------------------------------------------

// A process that has a store with a value on disk and waits to be killed.
class Child {
 public:
  explicit Child(const fs::path& folder) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      Store store(with_disk(folder, 0));
      store.put("a", numbers(10));
      (void)!::write(ends[1], "!", 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1);
    ::close(ends[0]);
  }
  ~Child() { kill(); }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_;
};

TEST(StoreDisk, RemovesWhatAKilledProcessLeftButNothingOfALivingOne) {
  const TemporaryFolder folder;
  Child dead(folder.path()), living(folder.path());
  Store mine(with_disk(folder.path(), 0));
  mine.put("a", numbers(10));
  EXPECT_EQ(store_folders(folder.path()).size(), 3u);
  EXPECT_EQ(value_files(folder.path()).size(), 3u);
  dead.kill();
  {
    Store next(with_disk(folder.path(), 0));
    EXPECT_EQ(store_folders(folder.path()).size(), 3u);  // mine, of the living, and the next one's
    EXPECT_EQ(value_files(folder.path()).size(), 2u);
  }
  living.kill();
  { Store last(with_disk(folder.path(), 0)); }
  EXPECT_EQ(store_folders(folder.path()).size(), 1u);
  EXPECT_EQ(mine.get("a").to_vector<float>(), numbers(10));
}

TEST(StoreDisk, LeavesAloneWhatOnlyLooksLikeAFolderOfTheDead) {
  const TemporaryFolder folder, elsewhere;
  fs::create_directory(folder / "reprise-store-1-0");
  folder.write("reprise-store-1-0/precious", "text");
  elsewhere.write("0.value", "text");
  fs::create_directory_symlink(elsewhere.path(), folder / "reprise-store-2-0");
  folder.write("reprise-store-3-0", "text");
  fs::create_directory(folder / "other");
  { Store store(with_disk(folder.path(), 0)); }
  EXPECT_EQ(folder.read("reprise-store-1-0/precious"), "text");
  EXPECT_EQ(elsewhere.read("0.value"), "text");
  EXPECT_EQ(folder.read("reprise-store-3-0"), "text");
  EXPECT_TRUE(fs::exists(folder / "other"));
}

TEST(StoreDisk, TakesAnotherNameIfItsFolderIsRemovedBeforeItIsLocked) {
  const TemporaryFolder folder;
  WatchedFiles files;
  int left = 2;
  files.before = [&](FileOperation operation, const fs::path& path) {
    if (operation != FileOperation::lock || left == 0) return;
    --left;  // what somebody does who starts just now and takes it for a folder of the dead
    const auto lock = FileSystem::machine().try_lock(path);
    ASSERT_TRUE(lock);
    fs::remove_all(path.parent_path());
    if (left == 0) fs::create_directory(path.parent_path());  // it removed the lock, and not yet the folder
  };
  Store store(with_disk(folder.path(), 0, &files));
  EXPECT_EQ(left, 0);
  store.put("a", numbers(10));
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
}

TEST(StoreDisk, TakesAnotherNameIfSomebodyElseHoldsTheLock) {
  const TemporaryFolder folder;
  WatchedFiles files;
  std::unique_ptr<FileLock> held;
  files.before = [&](FileOperation operation, const fs::path& path) {
    if (operation == FileOperation::lock && !held) held = FileSystem::machine().try_lock(path);
  };
  {
    Store store(with_disk(folder.path(), 0, &files));
    EXPECT_EQ(files.count(FileOperation::make_folder), 2);
    store.put("a", numbers(10));
    EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
  }
  held = nullptr;
  { Store next(with_disk(folder.path(), 0)); }
  EXPECT_TRUE(store_folders(folder.path()).empty());
}

TEST(StoreDisk, ALockHasOneHolderAlsoWhenHoldersRemoveTheFileOnManyThreads) {
  const TemporaryFolder folder;
  std::atomic<int> holders = 0, times = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        const auto lock = FileSystem::machine().try_lock(folder / "lock");
        if (!lock) continue;
        EXPECT_EQ(++holders, 1);
        EXPECT_TRUE(fs::exists(folder / "lock"));
        ++times;
        --holders;
        FileSystem::machine().remove_file(folder / "lock");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(times, 0);
}

}  // namespace
}  // namespace reprise
