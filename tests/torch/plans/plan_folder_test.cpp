// A folder of plans in which somebody else has put something.
#include "torch/plans/plan_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reprise/plan/planner.h"
#include "support/child.h"
#include "support/random_trace.h"
#include "support/temporary_folder.h"

namespace reprise::internal {
namespace {

using reprise::testing::TemporaryFolder;

namespace fs = std::filesystem;

constexpr Bytes budget = Bytes{1} << 40;

// A folder with a plan and hints, and what is written there.
class PlanFolder : public ::testing::Test {
 protected:
  PlanFolder() { plan_.budget = budget; }

  void write() const {
    write_to_folder(folder_.path(), trace_, plan_);
    write_advice(folder_.path(), budget, hints_);
  }
  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_.path())) files.push_back(entry.path());
    return files;
  }
  // 0 if both are there, 1 if neither, and otherwise something else.
  [[nodiscard]] int read() const {
    const bool plan = read_from_folder(folder_.path(), trace_, plan_.budget).has_value();
    const bool hints = !read_advice(folder_.path(), budget).empty();
    return plan && hints ? 0 : plan || hints ? 2 : 1;
  }

  const TemporaryFolder folder_, elsewhere_;
  const Trace trace_ = reprise::testing::random_trace(1);
  Plan plan_ = keep_everything(trace_);
  const std::vector<EvictionHints::Seen> hints_{{7, 1, 2}};
};

TEST_F(PlanFolder, HasFilesForThisUserOnly) {
  write();
  EXPECT_EQ(read(), 0);
  ASSERT_EQ(files().size(), 2u);
  for (const fs::path& file : files()) {
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write) << file;
  }
}

TEST_F(PlanFolder, WritesNothingThroughLinksThatAnotherUserHasPutThere) {
  const fs::path precious = elsewhere_.write("precious", "text");
  write();
  for (const fs::path& file : files()) {
    const std::string beside = file.string() + "." + std::to_string(::getpid());  // a name that can be guessed
    fs::create_symlink(precious, beside);
    fs::remove(file);
    fs::create_symlink(precious, file);
  }
  write();
  EXPECT_EQ(elsewhere_.read("precious"), "text");
  EXPECT_EQ(read(), 0);
}

TEST_F(PlanFolder, DoesNotWaitForPipesAndReadsNothingThatIsTooLarge) {
  write();
  const std::vector<fs::path> names = files();
  for (const fs::path& file : names) {
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  }
  EXPECT_EQ(reprise::testing::code_of(reprise::testing::start_child([&] { return read(); }), 10), 1);
  for (const fs::path& file : names) {
    fs::remove(file);
    elsewhere_.write("empty", "");
    fs::copy_file(elsewhere_ / "empty", file);
    fs::resize_file(file, std::uintmax_t{1} << 42);
  }
  EXPECT_EQ(read(), 1);
}

}  // namespace
}  // namespace reprise::internal
