// The disk tier among others: folders, links, pipes and files that others have made or changed.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reprise/store/store.h"
#include "store/disk.h"
#include "store/kept_value.h"
#include "store/ledger.h"
#include "store/store_support.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::code_of;
using testing::expect_contains;
using testing::FileOperation;
using testing::message_of;
using testing::numbers;
using testing::start_child;
using testing::store_folders;
using testing::TemporaryFolder;
using testing::WatchedFiles;

namespace fs = std::filesystem;

constexpr uid_t another_user = 65534;

StoreOptions with_disk(const fs::path& folder, FileSystem* files = nullptr, bool keep = false) {
  return {.memory = 0, .disk = DiskTier{.folder = folder, .keep = keep}, .files = files};
}

StoreOptions keeping(const fs::path& folder) {
  return with_disk(folder, nullptr, true);
}

// Makes what a killed process leaves, with a file in it.
fs::path make_folder_of_the_dead(const TemporaryFolder& inside, const std::string& name = "reprise-store-1-0") {
  const fs::path folder = inside / name;
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  inside.write(name + "/0.value", "text");
  inside.write(name + "/lock", "");
  return folder;
}

// Leaves the folder of a process that was killed while it had a store, and returns its path.
fs::path kill_a_store_in(const TemporaryFolder& inside) {
  EXPECT_EQ(code_of(start_child([&] {
              Store store(with_disk(inside.path()));
              store.put("a", numbers(10));
              ::raise(SIGKILL);
              return 0;
            })),
            128 + SIGKILL);
  EXPECT_EQ(store_folders(inside.path()).size(), 1u);
  return store_folders(inside.path()).at(0);
}

// ---- cleaning up after killed processes -----------------------------------------------------------------------------

// Whatever operation it comes before: only what is in the folder that was looked at is removed.
TEST(StoreAmongOthers, CleansUpNothingInTheTargetOfALinkThatTakesThePlaceOfAFolder) {
  for (const FileOperation moment : {FileOperation::open_folder, FileOperation::lock, FileOperation::list,
                                     FileOperation::remove_file, FileOperation::remove_folder}) {
    const TemporaryFolder folder, elsewhere;
    const fs::path dead = make_folder_of_the_dead(folder);
    elsewhere.write("0.value", "precious");
    elsewhere.write("lock", "");
    WatchedFiles files;
    bool swapped = false;
    files.before = [&](FileOperation operation, const fs::path& path) {
      if (operation != moment || swapped || (path != dead && path.parent_path() != dead)) return;
      swapped = true;
      fs::rename(dead, folder / "moved");
      fs::create_directory_symlink(elsewhere.path(), dead);
    };
    { Store store(with_disk(folder.path(), &files)); }
    EXPECT_TRUE(swapped) << static_cast<int>(moment);
    EXPECT_EQ(elsewhere.read("0.value"), "precious") << static_cast<int>(moment);
    EXPECT_TRUE(fs::exists(elsewhere / "lock")) << static_cast<int>(moment);
  }
}

TEST(StoreAmongOthers, CleansUpNoFolderThatBelongsToAnotherUserOrThatOthersCanWriteTo) {
  const TemporaryFolder folder;
  const fs::path open_to_all = make_folder_of_the_dead(folder, "reprise-store-1-0");
  fs::permissions(open_to_all, fs::perms::all);
  const bool root = ::geteuid() == 0;
  if (root) {
    const fs::path of_another = make_folder_of_the_dead(folder, "reprise-store-2-0");
    ASSERT_EQ(::chown(of_another.c_str(), another_user, another_user), 0);
  }
  make_folder_of_the_dead(folder, "reprise-store-3-0");
  { Store store(with_disk(folder.path())); }
  EXPECT_TRUE(fs::exists(open_to_all / "0.value"));
  EXPECT_EQ(fs::exists(folder / "reprise-store-2-0/0.value"), root);
  EXPECT_FALSE(fs::exists(folder / "reprise-store-3-0")) << "one's own is removed";
}

// A value is written, read and removed where the folder was when it was opened.
TEST(StoreAmongOthers, UsesItsOwnFolderEvenIfALinkTakesItsPlace) {
  const TemporaryFolder folder, elsewhere;
  elsewhere.write("0.value", "precious");
  {
    Store store(with_disk(folder.path()));
    const fs::path own = store_folders(folder.path()).at(0);
    fs::rename(own, folder / "moved");
    fs::create_directory_symlink(elsewhere.path(), own);
    store.put("a", numbers(10));
    EXPECT_EQ(store.get("a").to_vector<float>(), numbers(10));
    EXPECT_TRUE(fs::exists(folder / "moved/0.value"));
  }
  EXPECT_EQ(elsewhere.read("0.value"), "precious");
  EXPECT_FALSE(fs::exists(folder / "moved/0.value"));
}

TEST(StoreAmongOthers, OnAFileSystemOfSeveralMachinesOnlyFoldersThatThisOneMadeAreRemoved) {
  const TemporaryFolder folder;
  const fs::path dead = kill_a_store_in(folder);
  const fs::path of_another = make_folder_of_the_dead(folder, "reprise-store-00000000-1-0");
  WatchedFiles files;
  files.local = false;
  { Store store(with_disk(folder.path(), &files)); }
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(of_another / "0.value"));
  files.local = true;
  { Store store(with_disk(folder.path(), &files)); }
  EXPECT_FALSE(fs::exists(of_another));
}

// ---- folders that are kept ------------------------------------------------------------------------------------------

class KeptAmongOthers : public ::testing::Test {
 protected:
  KeptAmongOthers() {
    Store store(keeping(folder_.path()));
    store.put("a", numbers(10));
  }
  // Returns what is said when the folder is used.
  [[nodiscard]] std::string refusal() const {
    return message_of<DiskError>([&] { Store store(keeping(folder_.path())); });
  }

  const TemporaryFolder folder_, elsewhere_;
  const fs::path kept_ = folder_ / "reprise-kept", file_ = kept_ / "0.value";
};

TEST_F(KeptAmongOthers, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  ASSERT_EQ(::chown(kept_.c_str(), another_user, another_user), 0);
  const std::string said = refusal();
  expect_contains(said, kept_.string());
  expect_contains(said, "it belongs to user 65534, and not to user 0");
  expect_contains(said, "name another folder");
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(KeptAmongOthers, AFileOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  ASSERT_EQ(::chown(file_.c_str(), another_user, another_user), 0);
  expect_contains(refusal(), file_.string() + ": it belongs to user 65534");
}

TEST_F(KeptAmongOthers, WhatOthersCanWriteToIsRefused) {
  fs::permissions(file_, fs::perms::group_write, fs::perm_options::add);
  expect_contains(refusal(), file_.string() + ": other users can write to it (its mode is 620)");
  fs::permissions(kept_, fs::perms::others_write, fs::perm_options::add);
  expect_contains(refusal(), kept_.string() + ": other users can write to it (its mode is 702)");
}

TEST_F(KeptAmongOthers, LinksAreRefusedAndNothingIsRemovedBehindThem) {
  fs::rename(file_, elsewhere_ / "file");
  fs::create_symlink(elsewhere_ / "file", file_);
  expect_contains(refusal(), file_.string() + ": it is a link");
  fs::remove(file_);
  fs::rename(elsewhere_ / "file", elsewhere_ / "0.value");
  elsewhere_.write("1.part", "half");
  fs::remove_all(kept_);
  fs::create_directory_symlink(elsewhere_.path(), kept_);
  expect_contains(refusal(), kept_.string() + ": it is a link");
  EXPECT_TRUE(fs::exists(elsewhere_ / "0.value"));
  EXPECT_TRUE(fs::exists(elsewhere_ / "1.part"));
}

TEST_F(KeptAmongOthers, APipeIsRefusedAtOnce) {
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const int code = code_of(start_child([&] {
                             const std::string expected = file_.string() + ": it is no regular file";
                             return refusal().find(expected) != std::string::npos ? 0 : 1;
                           }),
                           10);
  EXPECT_EQ(code, 0);
}

// ---- files that say what is not so ----------------------------------------------------------------------------------

// Writes a file with the right checksums whose description is of another array than its contents.
void write_kept(const fs::path& folder, const std::string& key, const Codec& codec, std::span<const std::byte> coded,
                Element element, const Shape& shape) {
  internal::StoredValue value;
  value.key = key;
  value.codec = &codec;
  value.element = element;
  value.shape = shape;
  value.plain_bytes = static_cast<Bytes>(elements_of(shape) * bytes_of(element));
  internal::Ledger ledger(largest_bytes);
  internal::Disk disk(FileSystem::machine(), folder, true);
  const auto file = disk.write(key, coded, *ledger.try_reserve(1), internal::describe_kept(value));
  disk.leave_files();
}

// This many bytes cannot be had: to ask for them would be another error.
TEST(KeptFile, IsRefusedBeforeAnythingIsAllocatedForWhatItsCodecCannotHaveMade) {
  const Shape huge = {std::int64_t{1} << 45};
  const std::vector<float> plain = numbers(64);
  const std::vector<std::int32_t> integers(64, 3);
  for (const Codec* codec : codecs()) {
    const TemporaryFolder folder;
    const bool of_integers = codec->name() == "bits" || codec->name() == "small";
    const ArrayView array = of_integers ? ArrayView(integers) : ArrayView(plain);
    std::vector<std::byte> coded(codec->room(array).value());
    coded.resize(codec->encode(array, coded).value());
    write_kept(folder.path(), "bomb", *codec, coded, array.element(), huge);
    try {
      Store store(keeping(folder.path()));
      (void)store.get("bomb");
      ADD_FAILURE() << codec->name();
    } catch (const Error& error) {
      expect_contains(error.what(), "[store] ");
    } catch (const std::bad_alloc&) {
      ADD_FAILURE() << codec->name() << ": it was allocated";
    }
  }
}

TEST(KeptFile, ThatWasWrittenByHandAsItShouldBeIsRead) {
  for (const char* name : {"exact", "zstd"}) {
    const TemporaryFolder folder;
    const std::vector<float> zeros(64, 0);
    std::vector<std::byte> coded(codec(name).room(zeros).value());
    coded.resize(codec(name).encode(zeros, coded).value());
    write_kept(folder.path(), "zeros", codec(name), coded, Element::float32, {64});
    Store store(keeping(folder.path()));
    EXPECT_EQ(store.get("zeros").to_vector<float>(), zeros);
  }
}

}  // namespace
}  // namespace reprise
