// Copies of values on disk: written behind, read ahead, lost, and what is left of them.
#include "torch/offload/disk_tier.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <future>

#include "reprise/store/store.h"
#include "reprise/torch/errors.h"
#include "store/store_support.h"
#include "support/child.h"
#include "torch/memory/meter.h"

namespace reprise::testing {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t count = 4096;
constexpr Bytes bytes = count * 4;

at::Tensor numbers() {
  return at::arange(count, at::kFloat);
}

bool same(const c10::Storage& storage, const at::Tensor& tensor) {
  return storage.nbytes() == tensor.storage().nbytes() &&
         std::memcmp(storage.data(), tensor.storage().data(), storage.nbytes()) == 0;
}

class DiskTierTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<DiskTransferTier> open(Bytes most = largest_bytes) {
    return DiskTransferTier::open({.folder = folder.path(), .bytes = most, .files = &files});
  }
  // From now on this operation fails.
  void break_all(FileOperation broken) {
    files.before = [broken](FileOperation operation, const fs::path& path) {
      if (operation == broken) throw FileError("use", path, ENOSPC);
    };
  }
  [[nodiscard]] std::vector<fs::path> value_files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (entry.path().extension() == ".value") found.push_back(entry.path());
    }
    return found;
  }

  TemporaryFolder folder;
  WatchedFiles files;
};

TEST_F(DiskTierTest, GivesBackTheBitsThatWerePut) {
  const auto disk = open();
  const at::Tensor x = numbers();
  const auto copy = disk->put(x.storage(), {}, false);
  copy->finish_put();
  EXPECT_TRUE(same(copy->contents(), x));
  EXPECT_TRUE(same(copy->contents(), x)) << "as often as one likes";
  EXPECT_EQ(disk->totals().put, bytes);
  EXPECT_EQ(disk->totals().got, 2 * bytes);
}

TEST_F(DiskTierTest, GivesTheMemoryItselfAsLongAsItIsNotWritten) {
  std::promise<void> go_on;
  const auto wait = go_on.get_future().share();
  const auto disk = open();
  files.before = [&](FileOperation operation, auto&) {
    if (operation == FileOperation::create) wait.wait();
  };
  const at::Tensor x = numbers();
  const auto copy = disk->put(x.storage(), {}, false);
  EXPECT_LE(copy->state(), TransferState::putting);
  EXPECT_EQ(copy->contents().data(), x.storage().data());
  go_on.set_value();
  copy->finish_put();
  EXPECT_EQ(copy->state(), TransferState::stored);
  EXPECT_NE(copy->contents().data(), x.storage().data());
}

TEST_F(DiskTierTest, CountsWhatIsWrittenUntilItIsWritten) {
  const auto disk = open();
  const Bytes before = meter::live();
  auto copy = [&] {
    const at::Tensor x = numbers();
    return disk->put(x.storage(), {}, false);
  }();
  EXPECT_GE(meter::live(), before + bytes);
  copy->finish_put();
  EXPECT_EQ(meter::live(), before) << "it has freed the memory as well";
  EXPECT_FALSE(disk->drain_completed());
  EXPECT_FALSE(disk->finish_next_put());
}

TEST_F(DiskTierTest, CountsWhatIsReadAheadFromTheStart) {
  const auto disk = open();
  const int opened = files.count(FileOperation::open);
  const at::Tensor x = numbers();
  const auto copy = disk->put(x.storage(), {}, false);
  copy->finish_put();
  (void)disk->drain_completed();
  const Bytes before = meter::live();
  copy->fetch();
  EXPECT_TRUE(copy->fetched());
  EXPECT_EQ(meter::live(), before + meter::counted(bytes));
  {
    const c10::Storage back = copy->contents();
    EXPECT_TRUE(same(back, x));
    EXPECT_FALSE(copy->fetched());
  }
  EXPECT_EQ(meter::live(), before);
  EXPECT_EQ(files.count(FileOperation::open), opened + 1) << "it was read once";
}

TEST_F(DiskTierTest, GivesUpWhatWasFetchedAndNobodyAskedFor) {
  const auto disk = open();
  const at::Tensor x = numbers();
  const auto copy = disk->put(x.storage(), {}, false);
  copy->finish_put();
  (void)disk->drain_completed();
  const Bytes before = meter::live();
  copy->fetch();
  while (!disk->give_up_fetched()) {  // it may be in the middle of being read
  }
  EXPECT_EQ(meter::live(), before);
  EXPECT_TRUE(same(copy->contents(), x)) << "the file is still there";
}

TEST_F(DiskTierTest, RemovesAFileWithItsCopyAndTheFolderWithTheDisk) {
  auto disk = open();
  auto copy = disk->put(numbers().storage(), {}, false);
  copy->finish_put();
  EXPECT_EQ(value_files().size(), 1u);
  copy.reset();
  disk.reset();
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_EQ(files.bytes(), 0);
}

TEST_F(DiskTierTest, DoesNotWriteWhatNobodyWantsAnyMore) {
  std::promise<void> go_on;
  const auto wait = go_on.get_future().share();
  auto disk = open();
  files.before = [&](FileOperation operation, auto&) {
    if (operation == FileOperation::create) wait.wait();
  };
  const int created = files.count(FileOperation::create);
  auto first = disk->put(numbers().storage(), {}, false);
  while (files.count(FileOperation::create) == created) {
  }
  auto second = disk->put(numbers().storage(), {}, false);  // waits behind the first
  second.reset();
  go_on.set_value();
  first->finish_put();
  disk.reset();
  EXPECT_EQ(files.count(FileOperation::create), created + 1);
}

TEST_F(DiskTierTest, KeepsToItsBytes) {
  const auto disk = open(2 * bytes);
  const auto first = disk->put(numbers().storage(), {}, false);
  first->finish_put();
  const auto second = disk->put(numbers().storage(), {}, false);
  second->finish_put();
  EXPECT_TRUE(first->usable());
  EXPECT_FALSE(second->usable()) << "with its header it is too much";
  EXPECT_THROW((void)second->contents(), DiskError);
  EXPECT_EQ(disk->totals().failures, 1);
  EXPECT_NE(disk->totals().last_failure.find("disk.bytes"), std::string::npos);
}

TEST_F(DiskTierTest, MakesRoomOfWhatNobodyWantsAnyMore) {
  const auto disk = open(bytes + Disk::header_bytes);
  for (int i = 0; i < 20; ++i) {
    const auto copy = disk->put(numbers().storage(), {}, false);
    copy->finish_put();
    EXPECT_TRUE(copy->usable()) << i;
  }
}

TEST_F(DiskTierTest, LosesWhatCannotBeWritten) {
  for (const FileOperation operation : {FileOperation::create, FileOperation::write, FileOperation::close}) {
    const auto disk = open();
    break_all(operation);
    const auto copy = disk->put(numbers().storage(), {}, false);
    copy->finish_put();
    EXPECT_FALSE(copy->usable());
    EXPECT_THROW((void)copy->contents(), DiskError);
    files.before = [](auto, auto&) {};
    const at::Tensor x = numbers();
    const auto next = disk->put(x.storage(), {}, false);
    next->finish_put();
    EXPECT_TRUE(same(next->contents(), x)) << "the next one is as good as ever";
  }
}

TEST_F(DiskTierTest, LosesWhatCannotBeReadHereAndAhead) {
  for (const FileOperation operation : {FileOperation::open, FileOperation::read}) {
    for (const bool ahead : {false, true}) {
      const auto disk = open();
      const auto copy = disk->put(numbers().storage(), {}, false);
      copy->finish_put();
      (void)disk->drain_completed();
      const Bytes before = meter::live();
      break_all(operation);
      if (ahead) copy->fetch();
      EXPECT_THROW((void)copy->contents(), DiskError);
      EXPECT_FALSE(copy->usable());
      files.before = [](auto, auto&) {};
      (void)disk->drain_completed();
      EXPECT_EQ(meter::live(), before);
    }
  }
}

TEST_F(DiskTierTest, NoticesADamagedFile) {
  const auto disk = open();
  const auto copy = disk->put(numbers().storage(), {}, false);
  copy->finish_put();
  ASSERT_EQ(value_files().size(), 1u);
  std::fstream file(value_files()[0], std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file.put('!');
  file.close();
  EXPECT_THROW((void)copy->contents(), DiskError);
  EXPECT_NE(disk->totals().last_failure.find("checksum"), std::string::npos);
}

TEST_F(DiskTierTest, RemovesWhatAKilledProcessLeft) {
  const int code = in_child([this] {
    const auto disk = open();
    const auto copy = disk->put(numbers().storage(), {}, false);
    copy->finish_put();
    ::_exit(static_cast<int>(value_files().size()));  // without an end
    return 0;
  });
  EXPECT_EQ(code, 1);
  EXPECT_FALSE(fs::is_empty(folder.path()));
  { const auto disk = open(); }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_F(DiskTierTest, ServesTheChildOfAForkInTheMiddleOfAWrite) {
  std::promise<void> go_on;
  const auto wait = go_on.get_future().share();
  const auto disk = open();
  const at::Tensor x = numbers();
  const auto there = disk->put(x.storage(), {}, false);
  there->finish_put();
  const int created = files.count(FileOperation::create);
  const pid_t parent = ::getpid();
  files.before = [&](FileOperation operation, auto&) {
    if (operation == FileOperation::create && ::getpid() == parent) wait.wait();
  };
  const auto under_way = disk->put(x.storage(), {}, false);
  while (files.count(FileOperation::create) == created) {
  }
  const int code = in_child([&] {
    if (!same(there->contents(), x)) return 1;  // of the parent's
    under_way->finish_put();
    if (!under_way->usable() || !same(under_way->contents(), x)) return 2;
    const auto own = disk->put(x.storage(), {}, false);
    own->finish_put();
    return same(own->contents(), x) ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
  go_on.set_value();
  under_way->finish_put();
  EXPECT_TRUE(same(there->contents(), x)) << "the child has removed nothing of ours";
  EXPECT_TRUE(same(under_way->contents(), x));
}

TEST_F(DiskTierTest, ComparesWhatComesBackWithWhatWasThereWhenItWasPut) {
  std::promise<void> go_on;
  const auto wait = go_on.get_future().share();
  const auto disk = open();
  const at::Tensor x = numbers(), before = x.clone();
  const auto same_bits = disk->put(x.storage(), {}, true);
  same_bits->finish_put();
  EXPECT_TRUE(same(same_bits->contents(), x));
  EXPECT_TRUE(same_bits->verified());
  files.before = [&](FileOperation operation, auto&) {
    if (operation == FileOperation::create) wait.wait();
  };
  const auto first = disk->put(numbers().storage(), {}, true);
  const auto overwritten = disk->put(x.storage(), {}, true);  // waits behind the first
  x.zero_();                                                  // nobody may do so before it is put
  go_on.set_value();
  overwritten->finish_put();
  try {
    (void)overwritten->contents();
    FAIL() << "nobody has compared it";
  } catch (const MismatchError& error) {
    EXPECT_EQ(error.facts().reloaded_from, "disk");
  }
  EXPECT_FALSE(overwritten->verified());
  EXPECT_TRUE(same(same_bits->contents(), before));
}

TEST_F(DiskTierTest, MeasuresWhatAFileAndAByteCost) {
  const TierCosts costs = open()->costs();
  EXPECT_GT(costs.put_time(1), 0);
  EXPECT_GT(costs.get_time(1), 0);
  EXPECT_GT(costs.put_cost(64 << 20), costs.put_cost(1 << 10)) << "more bytes, more time";
  EXPECT_EQ(costs.capacity, std::nullopt);
  EXPECT_EQ(open(1 << 20)->costs().capacity, 1 << 20);
}

}  // namespace
}  // namespace reprise::testing
