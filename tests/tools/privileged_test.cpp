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
#ifdef REPRISE_WITH_LIBTORCH
#include "programs.h"
#endif

namespace reprise {
namespace {

using testing::Outcome;

// A program that is copied here can be given rights of its own.
class Privileged : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can make a program of another group";
    struct statvfs system {};
    ASSERT_EQ(statvfs(folder_.path().c_str(), &system), 0);
    if (system.f_flag & (ST_NOSUID | ST_NOEXEC)) GTEST_SKIP() << "setgid programs are ignored in " << folder_.path();
  }
  [[nodiscard]] std::string copy(const char* program) const {
    std::filesystem::copy_file(program, program_);
    EXPECT_EQ(chmod(program_.c_str(), 0755), 0);
    return program_;
  }
  void give_rights() const {
    constexpr gid_t another_group = 65534;
    ASSERT_EQ(chown(program_.c_str(), 0, another_group), 0);
    ASSERT_EQ(chmod(program_.c_str(), 0755 | S_ISGID), 0);
  }

  const testing::TemporaryFolder folder_;
  const std::string program_ = folder_ / "program";
};

TEST_F(Privileged, CommandLoadsNoLibraryThatItsCallerNames) {
  const std::string step = folder_ / "step.json", program = copy(REPRISE_COMMAND);
  write_trace(step, testing::random_training_step(9, 40));
  const auto plan = [&] {
    const Outcome outcome =
        testing::run_program({program, "plan", step, "--budget", "0.7x", "--moves", "500", "--json"},
                             {"REPRISE_HIGHS=/nowhere/libhighs.so"});
    EXPECT_NE(outcome.out.find("\"budget_bytes\""), std::string::npos) << outcome.err;
    return outcome.out;
  };
  const std::string named = "HiGHS was not found at '/nowhere/libhighs.so'";
  EXPECT_NE(plan().find(named), std::string::npos) << "its caller may";
  give_rights();
  EXPECT_EQ(plan().find(named), std::string::npos);
}

#ifdef REPRISE_WITH_LIBTORCH

TEST_F(Privileged, ProgramTakesNoSettingsFromItsCaller) {
  const std::string program = copy(REPRISE_PROGRAM_TRAINER);
  const std::filesystem::path live = std::filesystem::path(REPRISE_COMMAND).parent_path() / "libreprise_live.so";
  const auto begin = [&] { return testing::run_program({program, "5", "begins", live}, {"REPRISE_BUDGET=much"}); };
  const Outcome before = begin();
  EXPECT_EQ(before.code, 2);
  EXPECT_NE(before.err.find("REPRISE_BUDGET is 'much'"), std::string::npos) << before.err;
  give_rights();
  const Outcome outcome = begin();
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.err.find("REPRISE_BUDGET"), std::string::npos) << outcome.err;
}

#endif

}  // namespace
}  // namespace reprise
