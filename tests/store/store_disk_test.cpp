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
using testing::expect_contains;
using testing::fail_next;
using testing::FileOperation;
using testing::in_memory;
using testing::message_of;
using testing::numbers;
using testing::on_disk;
using testing::Random;
using testing::store_folders;
using testing::TemporaryFolder;
using testing::WatchedFiles;

constexpr Bytes ten = 40, file_of_ten = 72;

StoreOptions with_disk(const fs::path& folder, Bytes memory, FileSystem* files = nullptr) {
  return {.memory = memory, .disk = DiskTier{.folder = folder}, .remember = remember::all(), .files = files};
}

// The files of values in all of them.
std::vector<fs::path> value_files(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".value") found.push_back(entry.path());
  }
  return found;
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
  expect_contains(message, "open folder");
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

TEST(StoreDisk, HasAPeakOfTheFilesThatWereThereAndNotOfThoseThatCouldNotBeWritten) {
  const TemporaryFolder folder;
  WatchedFiles files;
  Store store(with_disk(folder.path(), 0, &files));
  for (const FileOperation kind : {FileOperation::create, FileOperation::write, FileOperation::close}) {
    fail_next(files, kind, ENOSPC);
    EXPECT_THROW(store.put("a", numbers(10)), DiskError);
    EXPECT_EQ(store.statistics().peak_disk_bytes, 0);
  }
  store.put("a", numbers(10));
  fail_next(files, FileOperation::write, ENOSPC);
  EXPECT_THROW(store.put("b", numbers(10)), DiskError);
  EXPECT_EQ(store.statistics().peak_disk_bytes, file_of_ten);
  store.put("b", numbers(10));
  store.erase("a");
  EXPECT_EQ(store.statistics().disk_bytes, file_of_ten);
  EXPECT_EQ(store.statistics().peak_disk_bytes, 2 * file_of_ten);
  EXPECT_EQ(files.peak(), 2 * file_of_ten);
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
    --left;  // as a store that starts now and takes the folder for abandoned
    const auto lock = FileSystem::machine().open_folder(path.parent_path())->try_lock("lock");
    ASSERT_TRUE(lock);
    fs::remove_all(path.parent_path());
    if (left == 0) fs::create_directory(path.parent_path());  // it removed the lock, and not yet the folder
  };
  Store store(with_disk(folder.path(), 0, &files));
  EXPECT_EQ(left, 0);
  store.put("a", numbers(10));
  EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
}

TEST(StoreDisk, TakesAnotherNameIfAnotherProcessHoldsTheLock) {
  const TemporaryFolder folder;
  WatchedFiles files;
  std::unique_ptr<FileLock> held;
  files.before = [&](FileOperation operation, const fs::path& path) {
    if (operation != FileOperation::lock || held) return;
    held = FileSystem::machine().open_folder(path.parent_path())->try_lock("lock");
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

}  // namespace
}  // namespace reprise
