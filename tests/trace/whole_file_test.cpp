// Files that are written whole or not at all, and files that are read where others may have put something else.
#include "trace/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "support/child.h"
#include "support/temporary_folder.h"
#include "trace/json_file.h"

namespace reprise::internal {
namespace {

using reprise::testing::TemporaryFolder;

namespace fs = std::filesystem;

constexpr int another_user = 65534;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

unsigned mode_of(const fs::path& path) {
  return static_cast<unsigned>(fs::symlink_status(path).permissions());
}

fs::path only_file_in(const TemporaryFolder& folder) {
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  return fs::directory_iterator(folder.path())->path();
}

TEST(WholeFile, ThatIsNotCommittedLeavesTheOldOneAndNothingElse) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("plan.json", "old");
  {
    WholeFile file(path);
    file.write("half of");
  }
  EXPECT_EQ(only_file_in(folder), path);
  EXPECT_EQ(folder.read("plan.json"), "old");
}

// A user who may not read the file in the end may not read it at any moment.
TEST(WholeFile, HasItsModeFromTheStart) {
  const mode_t before = ::umask(0);
  {
    const TemporaryFolder folder;
    WholeFile file(folder / "plan.json", WholeFile::Kind::of_folder);
    EXPECT_EQ(mode_of(only_file_in(folder)), 0600u);
    file.commit();
    EXPECT_EQ(mode_of(folder / "plan.json"), 0600u);
  }
  {
    const TemporaryFolder folder;
    write_text(folder / "plan.json", "new");
    EXPECT_EQ(mode_of(folder / "plan.json"), 0666u);
  }
  ::umask(before);
}

TEST(WholeFile, OfAFolderTakesThePlaceOfALink) {
  const TemporaryFolder folder, elsewhere;
  const fs::path precious = elsewhere.write("precious", "text");
  fs::create_symlink(precious, folder / "plan.json");
  write_text(folder / "plan.json", "plan", WholeFile::Kind::of_folder);
  EXPECT_FALSE(fs::is_symlink(folder / "plan.json"));
  EXPECT_EQ(folder.read("plan.json"), "plan");
  EXPECT_EQ(elsewhere.read("precious"), "text");
}

TEST(WholeFile, IsNotWrittenThroughALinkThatAnotherUserMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user";
  const TemporaryFolder folder, elsewhere;
  const fs::path precious = elsewhere.write("precious", "text"), link = folder / "out.json";
  fs::create_symlink(precious, link);
  ASSERT_EQ(::lchown(link.c_str(), another_user, another_user), 0);
  EXPECT_EQ(error_of([&] { write_text(link, "plan"); }),
            link.string() + ": cannot be written: it is a link that another user made");
  EXPECT_EQ(elsewhere.read("precious"), "text");
}

TEST(WholeFile, GoesThroughAPipeThatTheUserNames) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_text(pipe); });
  write_text(pipe, "plan");
  reader.join();
  EXPECT_EQ(got, "plan");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(SmallFile, IsARegularFileOfAtMostSoManyBytesAndNoLink) {
  const TemporaryFolder folder;
  folder.write("small", "12345");
  EXPECT_EQ(read_small_file(folder / "small", 5), "12345");
  EXPECT_NE(error_of([&] { (void)read_small_file(folder / "small", 4); }).find("it has 5 bytes"), std::string::npos);
  fs::create_symlink("small", folder / "link");
  EXPECT_NE(error_of([&] { (void)read_small_file(folder / "link", 5); }).find("cannot be read"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int code =
      reprise::testing::code_of(reprise::testing::start_child([&] {
                                  const auto read = [&] { (void)read_small_file(folder / "pipe", 5); };
                                  return error_of(read).find("no regular file") != std::string::npos ? 0 : 1;
                                }),
                                10);
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace reprise::internal
