// A program that is started with rights its caller does not have takes nothing from the caller's environment.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "paths.h"
#include "reprise/trace/files.h"
#include "reprise_process.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

using testing::Outcome;

TEST(PrivilegedCommand, LoadsNoLibraryThatItsCallerNames) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program of another group";
  const testing::TemporaryFolder folder;
  struct statvfs system {};
  ASSERT_EQ(statvfs(folder.path().c_str(), &system), 0);
  if (system.f_flag & (ST_NOSUID | ST_NOEXEC)) GTEST_SKIP() << "setuid programs are ignored in " << folder.path();
  const std::filesystem::path step = folder / "step.json", program = folder / "reprise";
  write_trace(step, testing::random_training_step(9, 40));
  std::filesystem::copy_file(REPRISE_COMMAND, program);
  const auto plan = [&] {
    const Outcome outcome =
        testing::run_program({program.string(), "plan", step.string(), "--budget", "0.7x", "--moves", "500", "--json"},
                             {"REPRISE_HIGHS=/nowhere/libhighs.so"});
    EXPECT_NE(outcome.out.find("\"budget_bytes\""), std::string::npos) << outcome.err;
    return outcome.out;
  };
  const std::string named = "HiGHS was not found at '/nowhere/libhighs.so'";
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  EXPECT_NE(plan().find(named), std::string::npos) << "its caller may";
  constexpr gid_t another_group = 65534;
  ASSERT_EQ(chown(program.c_str(), 0, another_group), 0);
  ASSERT_EQ(chmod(program.c_str(), 0755 | S_ISGID), 0);
  EXPECT_EQ(plan().find(named), std::string::npos);
}

}  // namespace
}  // namespace reprise
