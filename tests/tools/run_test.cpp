// reprise run: programs that know nothing of Reprise, under a budget.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "paths.h"
#include "reprise/trace/files.h"
#include "reprise_process.h"
#include "support/child.h"
#ifdef REPRISE_WITH_LIBTORCH
#include "programs.h"
#endif

namespace reprise {
namespace {

using testing::one_line;
using testing::Outcome;
using testing::run_command;
using testing::run_program;

TEST(RunUsage, NeedsAProgram) {
  const Outcome outcome = run_command({"run", "--budget", "1GiB"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "reprise run: PROGRAM is missing; see reprise run --help\n");
}

TEST(RunUsage, RefusesWhatIsNoAmount) {
  const Outcome outcome = run_command({"run", "--budget", "much", "--", "true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--budget"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("'much'"), std::string::npos) << outcome.err;
}

TEST(RunUsage, RefusesBudgetsThatAreNone) {
  const auto refused = [](const std::vector<std::string>& options, const std::string& because) {
    std::vector<std::string> words = {"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const Outcome outcome = run_command(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(because), std::string::npos) << outcome.err;
  };
  refused({"--budgets", "2GiB"}, "--budgets is '2GiB': '2GiB' is not DEVICE=AMOUNT");
  refused({"--budgets", "cpu=2GiB,=1GiB"}, "'=1GiB' is not DEVICE=AMOUNT");
  refused({"--budgets", "cpu=2GiB,cuda:0=much"}, "'much'");
  refused({"--budgets", "cpu=2GiB,cpu=1GiB"}, "'cpu' has two budgets");
  refused({"--budgets", "cpu=2GiB", "--budget", "1GiB"}, "give it instead of --budget and --device");
  refused({"--budgets", "cpu=2GiB", "--device", "cpu"}, "give it instead of --budget and --device");
}

TEST(RunUsage, RefusesTiersOfNothing) {
  const auto refused = [](const std::vector<std::string>& options, const std::string& because) {
    std::vector<std::string> words = {"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const Outcome outcome = run_command(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
    EXPECT_NE(outcome.err.find(because), std::string::npos) << outcome.err;
  };
  refused({"--host", "much", "--device", "npu:0"}, "--host is 'much': it must be a number of bytes");
  const std::string names_none = "--host is memory below that of an accelerator: name the accelerator with --device";
  refused({"--host", "1GiB"}, names_none);
  refused({"--host", "1GiB", "--device", "cpu"}, names_none);
  refused({"--host", "1GiB", "--budgets", "cpu=2GiB"}, names_none);
  const std::string for_cpu = "--disk is for values of the CPU, and the budget is one of npu:0";
  refused({"--disk", "/tmp", "--device", "npu:0"}, for_cpu);
  refused({"--disk", "/tmp", "--budgets", "npu:0=1GiB"}, for_cpu);
  refused({"--disk-bytes", "1GiB"}, "--disk-bytes is about a disk, and there is none");
}

TEST(RunUsage, AVariableThatNoOneReadsIsAnErrorThatNamesTheNearest) {
  const Outcome outcome = run_program({REPRISE_COMMAND, "run", "--", "true"}, {"REPRISE_BUGDET=1GiB"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "reprise run: the environment has REPRISE_BUGDET, which is no variable of Reprise; the nearest is "
            "REPRISE_BUDGET\n");
  const Outcome much = run_program({REPRISE_COMMAND, "run", "--", "true"}, {"REPRISE_BUDGET=much"});
  EXPECT_EQ(much.code, 2);
  EXPECT_NE(much.err.find("REPRISE_BUDGET is 'much': it must be"), std::string::npos) << much.err;
}

TEST(RunUsage, AProgramThatIsNotThereHasTheExitCodeOfAShell) {
  const Outcome outcome = run_command({"run", "--budget", "1GiB", "--", "no-such-program"});
  EXPECT_EQ(outcome.code, 127);
  EXPECT_EQ(outcome.err, "reprise run: there is no program 'no-such-program' that can be executed\n");
}

TEST(Completion, OfEveryShellKnowsEveryCommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = run_command({"completion", shell});
    EXPECT_EQ(outcome.code, 0);
    for (const char* word : {"train", "run", "report", "doctor", "plan", "simulate", "curve", "inspect", "planners"}) {
      EXPECT_NE(outcome.out.find(word), std::string::npos) << shell << ": " << word;
    }
  }
  EXPECT_EQ(run_command({"completion", "cmd"}).code, 2);
}

TEST(Completion, OfBashCompletesCommandsOptionsAndFiles) {
  const std::string script = "source <(" REPRISE_COMMAND
                             " completion bash); ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _reprise; "
                             "echo \"${COMPREPLY[*]}\"; }; cd /; ask reprise doc; ask reprise plan --bud; "
                             "ask reprise plan /et";
  const Outcome outcome = run_program({"/bin/bash", "-c", script});
  EXPECT_EQ(outcome.out, "doctor\n--budget\n/etc\n") << outcome.err;
}

#ifndef REPRISE_WITH_LIBTORCH

TEST(RunWithoutLibTorch, SaysThatItWasBuiltWithoutIt) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "--", "/bin/true"}, {"train"}, {"run", "--library"}}) {
    const Outcome outcome = run_command(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("built without LibTorch"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run_command({"doctor"}).code, 1);
}

#else

// ---- programs that cannot be put under a budget --------------------------------------------------------------------

void expect_refused(const std::string& program, const std::string& words) {
  const Outcome refused = run_command({"run", "--budget", "1GiB", "--", program});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(one_line(refused.err)) << refused.err;
  EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;

  const Outcome untouched = run_command({"run", "--budget", "1GiB", "--if-possible", "--", program});
  EXPECT_EQ(untouched.code, 5);
  EXPECT_EQ(untouched.out, "ran\n");
  EXPECT_NE(untouched.err.find(words), std::string::npos) << untouched.err;
  EXPECT_NE(untouched.err.find("The program runs untouched"), std::string::npos) << untouched.err;
}

TEST(RunRefuses, AProgramWithoutLibTorch) {
  expect_refused(REPRISE_PROGRAM_PLAIN, "is not linked to LibTorch");
}

TEST(RunRefuses, AStaticProgram) {
  expect_refused(REPRISE_PROGRAM_STATIC, "is statically linked");
}

TEST(RunRefuses, AnotherLibTorch) {
  expect_refused(REPRISE_PROGRAM_WITH_OTHER, "is linked to a LibTorch that this Reprise was not built for");
}

TEST(RunRefuses, ALibTorchThatSaysItIsOfAnotherVersion) {
  const Outcome outcome = run_program({REPRISE_COMMAND, "run", "--budget", "1GiB", "--", REPRISE_PROGRAM_TRAINER, "0"},
                                      {"LD_PRELOAD=" REPRISE_PROGRAM_OTHER_VERSION});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("it is 9.9.9, and Reprise was built for"), std::string::npos) << outcome.err;
}

TEST(RunRefuses, AProgramThatHasRepriseLinkedIn) {
  const std::string program = REPRISE_COMMAND "-torch";
  const Outcome refused = run_command({"run", "--budget", "1GiB", "--", program, "--version"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("has Reprise linked in"), std::string::npos) << refused.err;
  const Outcome untouched = run_command({"run", "--budget", "1GiB", "--if-possible", "--", program, "--version"});
  EXPECT_EQ(untouched.code, 0) << untouched.err;
}

TEST(RunRefuses, AProgramThatIsStartedWithRightsOfItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program of another owner";
  const testing::TemporaryFolder folder;
  const std::filesystem::path program = folder / "trainer";
  std::filesystem::copy_file(REPRISE_PROGRAM_TRAINER, program);
  constexpr uid_t another_user = 65534;
  for (const mode_t right : {S_ISUID, S_ISGID}) {
    ASSERT_EQ(chown(program.c_str(), another_user, another_user), 0);
    ASSERT_EQ(chmod(program.c_str(), 0755 | right), 0);
    const Outcome refused = run_command({"run", "--budget", "1MiB", "--", program.string(), "0"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("is started with rights of its own"), std::string::npos) << refused.err;
  }
}

// Its caller is another user: root has all capabilities already.
TEST(RunRefuses, AProgramThatIsStartedWithCapabilitiesOfItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give capabilities to a program";
  const testing::TemporaryFolder folder;
  const std::filesystem::path program = folder / "trainer";
  std::filesystem::copy_file(REPRISE_PROGRAM_TRAINER, program);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  vfs_cap_data capabilities{};
  capabilities.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  capabilities.data[0].permitted = 1U << CAP_NET_RAW;
  if (setxattr(program.c_str(), "security.capability", &capabilities, XATTR_CAPS_SZ_2, 0) != 0) {
    GTEST_SKIP() << "no program has capabilities in " << folder.path();
  }
  constexpr uid_t another_user = 65534;
  const int unreachable = 77;
  const int code = testing::in_child([&] {
    if (setgid(another_user) != 0 || setuid(another_user) != 0) return unreachable;
    if (access(REPRISE_COMMAND, X_OK) != 0) return unreachable;
    const Outcome refused = run_command({"run", "--budget", "1MiB", "--", program.string(), "0"});
    return refused.code == 2 && refused.err.find("is started with rights of its own") != std::string::npos ? 0 : 1;
  });
  if (code == unreachable) GTEST_SKIP() << "another user cannot start " << REPRISE_COMMAND;
  EXPECT_EQ(code, 0);
}

TEST(RunRefuses, AScript) {
  const testing::TemporaryFolder folder;
  const std::string script = (folder / "script").string();
  std::ofstream(script) << "#!/bin/sh\necho ran\nexit 5\n";
  chmod(script.c_str(), 0700);
  expect_refused(script, "is a script");
}

// ---- what is preloaded ---------------------------------------------------------------------------------------------

// Reprise in a folder of this name.
class CopyOfReprise {
 public:
  explicit CopyOfReprise(const std::string& folder) : folder_(folder_of_all_ / folder) {
    std::filesystem::create_directory(folder_);
    const std::filesystem::path built = std::filesystem::path(REPRISE_COMMAND).parent_path();
    for (const char* file : {"reprise", "reprise-torch", "libreprise_preload.so", "libreprise_live.so"}) {
      std::filesystem::copy_file(built / file, folder_ / file);
    }
  }
  [[nodiscard]] Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), {folder_ / "reprise", "run"});
    return run_program(words);
  }
  [[nodiscard]] Outcome doctor() const { return run_program({folder_ / "reprise", "doctor"}); }

 private:
  const testing::TemporaryFolder folder_of_all_;
  const std::filesystem::path folder_;
};

// The loader would take the path for several, or for another one, and run the program without a budget.
TEST(RunPreloads, NothingFromAFolderThatLdPreloadCannotName) {
  const std::string words = "cannot be preloaded, because LD_PRELOAD has no way to name it: move Reprise to a folder";
  for (const char* folder : {"with blank", "with:colon", "with$ORIGIN"}) {
    const CopyOfReprise reprise(folder);
    const Outcome refused = reprise.run({"--budget", "1MiB", "--", REPRISE_PROGRAM_TRAINER, "5", "preloads"});
    EXPECT_EQ(refused.code, 2) << folder;
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(one_line(refused.err)) << refused.err;
    EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;

    const Outcome untouched =
        reprise.run({"--budget", "1MiB", "--if-possible", "--", REPRISE_PROGRAM_TRAINER, "5", "preloads"});
    EXPECT_EQ(untouched.code, 5) << folder;
    EXPECT_EQ(untouched.out, "none\n");
    EXPECT_NE(untouched.err.find(words), std::string::npos) << untouched.err;
    EXPECT_NE(untouched.err.find("The program runs untouched"), std::string::npos) << untouched.err;

    const Outcome library = reprise.run({"--library"});
    EXPECT_EQ(library.code, 2) << folder;
    EXPECT_EQ(library.out, "");
    EXPECT_NE(library.err.find(words), std::string::npos) << library.err;

    const Outcome findings = reprise.doctor();
    EXPECT_EQ(findings.code, 1) << folder;
    EXPECT_NE(findings.out.find(words), std::string::npos) << findings.out;
  }
}

TEST(RunPreloads, FromAnyOtherFolderByAnAbsolutePath) {
  for (const std::string folder : {"plain~(+)é", "with\nnewline\xff"}) {
    const CopyOfReprise reprise(folder);
    const Outcome outcome = reprise.run({"--budget", "1MiB", "--", REPRISE_PROGRAM_TRAINER, "5", "preloads"});
    EXPECT_EQ(outcome.code, 5) << outcome.err;
    EXPECT_EQ(outcome.err.find("ld.so"), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("/")) << outcome.out;
    EXPECT_TRUE(outcome.out.ends_with(folder + "/libreprise_preload.so\n")) << outcome.out;
  }
  EXPECT_TRUE(CopyOfReprise("plain~(+)é").run({"--library"}).out.ends_with("/plain~(+)é/libreprise_preload.so\n"));
  EXPECT_EQ(CopyOfReprise("with\nnewline").run({"--library"}).code, 2);
}

TEST(RunPreloads, InFrontOfWhatThereIs) {
  const std::string others = "LD_PRELOAD=libm.so.6 libpthread.so.0";
  const std::vector<std::string> program = {REPRISE_PROGRAM_TRAINER, "5", "preloads"};
  std::vector<std::string> words = {REPRISE_COMMAND, "run", "--budget", "1GiB", "--"};
  words.insert(words.end(), program.begin(), program.end());
  const Outcome outcome = run_program(words, {others});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  const std::string library = run_command({"run", "--library"}).out;
  EXPECT_EQ(outcome.out, library.substr(0, library.find('\n')) + ":libm.so.6 libpthread.so.0\n");
}

TEST(RunPreloads, NothingIntoAProgramThatRunsUntouchedAndLeavesItEverythingElse) {
  const std::string file = run_command({"run", "--library"}).out, library = file.substr(0, file.find('\n'));
  const auto left_of = [&](const std::string& preloaded) {
    const Outcome outcome = run_program({REPRISE_PROGRAM_TRAINER, "5", "preloads"},
                                        {"LD_PRELOAD=" + preloaded, "REPRISE_BUDGET=much", "REPRISE_IF_POSSIBLE=1"});
    EXPECT_EQ(outcome.code, 5) << outcome.err;
    EXPECT_NE(outcome.err.find("the program runs untouched"), std::string::npos) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(left_of(library), "none\n");
  EXPECT_EQ(left_of(library + ":libm.so.6"), "libm.so.6\n");
  EXPECT_EQ(left_of("libm.so.6 " + library), "libm.so.6\n");
  EXPECT_EQ(left_of("libpthread.so.0:libm.so.6::" + library + " libdl.so.2:"),
            "libpthread.so.0:libm.so.6:libdl.so.2\n");
  // Known by another name, it cannot be told from the others: they go with it, or the program would begin for ever.
  const testing::TemporaryFolder folder;
  std::filesystem::create_symlink(library, folder / "other.so");
  EXPECT_EQ(left_of((folder / "other.so").string() + ":libm.so.6"), "none\n");
}

// ---- programs that can ---------------------------------------------------------------------------------------------

class Preloaded : public ::testing::Test {
 protected:
  // The program's own output: it is compared with that of a plain run.
  static const std::string& plain() {
    static const std::string out = run_program({REPRISE_PROGRAM_TRAINER, "0"}).out;
    return out;
  }
  // What it needs, as the summary of a run without a budget tells.
  static Bytes plain_peak() {
    static const Bytes peak = [] {
      const Outcome outcome = run_command({"run", "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "0"});
      return nlohmann::json::parse(outcome.err).at("peak_bytes").get<Bytes>();
    }();
    return peak;
  }
  static std::string budget() { return std::to_string(plain_peak() * 6 / 10); }
};

TEST_F(Preloaded, OutputAndExitCodeAreTheProgramsOwnBitForBit) {
  const Outcome outcome =
      run_command({"run", "--budget", budget(), "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "7"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.out, plain());
  const auto summary = nlohmann::json::parse(outcome.err);
  EXPECT_LE(summary.at("peak_bytes").get<Bytes>(), plain_peak() * 6 / 10);
  EXPECT_GE(summary.at("steps").get<int>(), 8);
  EXPECT_GT(summary.at("verified").get<int>(), 0);
}

TEST_F(Preloaded, IsConfiguredByTheEnvironmentAlone) {
  const std::string library = run_command({"run", "--library"}).out;
  const Outcome outcome = run_program({REPRISE_PROGRAM_TRAINER, "3"},
                                      {"LD_PRELOAD=" + library.substr(0, library.find('\n')),
                                       "REPRISE_BUDGET=" + budget(), "REPRISE_SUMMARY=json", "REPRISE_PACK=off"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, plain());
  EXPECT_EQ(nlohmann::json::parse(outcome.err).at("packed_last_step_bytes"), 0);
}

TEST_F(Preloaded, UsesADiskAndLeavesNothingThere) {
  const testing::TemporaryFolder folder;
  const Outcome outcome = run_command({"run", "--budget", budget(), "--disk", folder.path().string(), "--disk-bytes",
                                       "1GiB", "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "7"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.out, plain());
  EXPECT_EQ(nlohmann::json::parse(outcome.err).at("disk_failures"), 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(run_command({"run", "--disk-bytes", "much", "--", REPRISE_PROGRAM_TRAINER}).code, 2);
}

TEST_F(Preloaded, LimitsTheDeviceThatIsNamed) {
  for (const std::vector<std::string>& named :
       {std::vector<std::string>{"--budget", budget(), "--device", "cpu"}, {"--budgets", "cpu=" + budget()}}) {
    std::vector<std::string> words = {"run", "--summary", "json"};
    words.insert(words.end(), named.begin(), named.end());
    words.insert(words.end(), {"--", REPRISE_PROGRAM_TRAINER, "7"});
    const Outcome outcome = run_command(words);
    EXPECT_EQ(outcome.code, 7);
    EXPECT_EQ(outcome.out, plain());
    const auto summary = nlohmann::json::parse(outcome.err);
    EXPECT_EQ(summary.at("device"), "cpu");
    EXPECT_GT(summary.at("replays"), 0) << outcome.err;
  }
}

TEST_F(Preloaded, TakesAShareOfWhatItsFirstTwoStepsNeed) {
  const Outcome outcome =
      run_command({"run", "--budget", "0.8x", "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "7"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.out, plain());
  const auto summary = nlohmann::json::parse(outcome.err);
  ASSERT_FALSE(summary.at("budget_bytes").is_null()) << outcome.err;
  EXPECT_LT(summary.at("budget_bytes").get<Bytes>(), plain_peak());
  EXPECT_LE(summary.at("peak_last_step_bytes").get<Bytes>(), summary.at("budget_bytes").get<Bytes>());
  EXPECT_GT(summary.at("replays"), 0) << outcome.err;
}

TEST_F(Preloaded, EvictsEverythingAndFollowsAPolicyIfItIsToldSo) {
  const Outcome everything = run_command(
      {"run", "--evict-everything", "--verify", "always", "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "7"});
  EXPECT_EQ(everything.code, 7);
  EXPECT_EQ(everything.out, plain());
  EXPECT_GT(nlohmann::json::parse(everything.err).at("verified"), 0) << everything.err;
  const Outcome by_policy = run_command({"run", "--budget", "1GiB", "--policy", "keep_products,aten::relu=evict",
                                         "--name", "own", "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "7"});
  EXPECT_EQ(by_policy.code, 7);
  EXPECT_EQ(by_policy.out, plain());
  EXPECT_EQ(nlohmann::json::parse(by_policy.err).at("name"), "own");
  const Outcome refused = run_command({"run", "--policy", "aten::rleu=evict", "--", REPRISE_PROGRAM_TRAINER, "7"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("near are aten::relu"), std::string::npos) << refused.err;
}

TEST_F(Preloaded, ADeviceThatThereIsNotIsRefusedBeforeTheProgramBegins) {
  for (const std::vector<std::string>& named :
       {std::vector<std::string>{"--budget", "1GiB", "--device", "nonsense"}, {"--budgets", "nonsense:0=1GiB"}}) {
    std::vector<std::string> words = {"run"};
    words.insert(words.end(), named.begin(), named.end());
    words.insert(words.end(), {"--", REPRISE_PROGRAM_TRAINER, "7"});
    const Outcome outcome = run_command(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("LibTorch knows no such device when the program begins"), std::string::npos)
        << outcome.err;
  }
}

TEST_F(Preloaded, AnEnvironmentWithMemoryOfTheHostBelowTheCpuIsRefusedBeforeTheProgramBegins) {
  const std::string library = run_command({"run", "--library"}).out;
  const std::string preload = "LD_PRELOAD=" + library.substr(0, library.find('\n'));
  const auto refused = [&](const std::vector<std::string>& environment, const std::string& because) {
    std::vector<std::string> all = {preload};
    all.insert(all.end(), environment.begin(), environment.end());
    const Outcome outcome = run_program({REPRISE_PROGRAM_TRAINER, "3"}, all);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(because), std::string::npos) << outcome.err;
  };
  refused({"REPRISE_HOST=much"}, "REPRISE_HOST is 'much'");
  refused({"REPRISE_HOST=1024"}, "option host.bytes is 1024, and no accelerator is named");
  refused({"REPRISE_HOST=1024", "REPRISE_DEVICE=cpu"}, "option host.bytes is 1024, and no accelerator is named");
  refused({"REPRISE_HOST=1024", "REPRISE_BUDGETS=cpu=1GiB"}, "option host.bytes is 1024, and no accelerator is named");
}

TEST_F(Preloaded, AnEnvironmentThatMakesNoSenseEndsTheProgramUnlessItMayRunUntouched) {
  const std::string library = run_command({"run", "--library"}).out;
  const std::string preload = "LD_PRELOAD=" + library.substr(0, library.find('\n'));
  const Outcome refused = run_program({REPRISE_PROGRAM_TRAINER, "3"}, {preload, "REPRISE_BUDGET=much"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("REPRISE_BUDGET is 'much'"), std::string::npos) << refused.err;
  const Outcome typo = run_program({REPRISE_PROGRAM_TRAINER, "3"}, {preload, "REPRISE_BUGDET=1GiB"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_EQ(typo.out, "");
  EXPECT_NE(typo.err.find("the nearest is REPRISE_BUDGET"), std::string::npos) << typo.err;
  const Outcome untouched =
      run_program({REPRISE_PROGRAM_TRAINER, "3"}, {preload, "REPRISE_BUDGET=much", "REPRISE_IF_POSSIBLE=1"});
  EXPECT_EQ(untouched.code, 3);
  EXPECT_EQ(untouched.out, plain());
}

TEST_F(Preloaded, ProcessesWithoutLibTorchAreLeftAlone) {
  const std::string library = run_command({"run", "--library"}).out;
  const Outcome outcome = run_program({REPRISE_PROGRAM_PLAIN},
                                      {"LD_PRELOAD=" + library.substr(0, library.find('\n')), "REPRISE_BUDGET=much"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.out, "ran\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Preloaded, TrainingOnAnotherThreadIsFoundToo) {
  const Outcome outcome =
      run_command({"run", "--budget", budget(), "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "0", "thread"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, plain());
  EXPECT_GE(nlohmann::json::parse(outcome.err).at("steps").get<int>(), 8);
}

TEST_F(Preloaded, ThreadsThatTrainOneAfterAnotherShareASessionAndEveryStepIsCountedOnce) {
  // Every step is met in the middle, so that less can be evicted.
  const std::string budget = std::to_string(plain_peak() * 8 / 10);
  const Outcome outcome =
      run_command({"run", "--budget", budget, "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "0", "threads"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, plain());
  EXPECT_EQ(nlohmann::json::parse(outcome.err).at("steps"), 8);
}

TEST_F(Preloaded, AGraphThatStaysAliveDoesNotKeepStepsFromEnding) {
  const std::string budget = std::to_string(plain_peak() * 8 / 10);
  const Outcome outcome =
      run_command({"run", "--budget", budget, "--summary", "json", "--", REPRISE_PROGRAM_TRAINER, "0", "keeps"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, run_program({REPRISE_PROGRAM_TRAINER, "0", "keeps"}).out);
  EXPECT_GE(nlohmann::json::parse(outcome.err).at("steps").get<int>(), 6);
}

TEST_F(Preloaded, AChildOfTheProgramTrainsAndExitsAndOnlyTheProgramTellsWhatCameOfIt) {
  const Outcome outcome = run_command({"run", "--budget", budget(), "--planning-time", "0.3", "--summary", "json", "--",
                                       REPRISE_PROGRAM_TRAINER, "0", "fork"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, plain());
  EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.err).at("steps"), 8);
}

TEST_F(Preloaded, StepsEndAlsoWhereAPartOfTheGraphIsNeverReachedByBackward) {
  const Outcome outcome = run_command({"run", "--budget", budget(), "--summary", "json", "--planning-time", "0.5", "--",
                                       REPRISE_PROGRAM_TRAINER, "0", "unreached"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, plain());
  const auto summary = nlohmann::json::parse(outcome.err);
  EXPECT_GE(summary.at("steps").get<int>(), 7);
  EXPECT_GT(summary.at("traces").get<int>(), 0);
}

TEST_F(Preloaded, ABudgetThatCannotBeKeptEndsTheProgramWithAnErrorThatSaysWhatIsNeeded) {
  const Outcome outcome = run_command({"run", "--budget", "1MiB", "--", REPRISE_PROGRAM_TRAINER, "0"});
  EXPECT_EQ(outcome.code, 128 + 6);  // std::terminate, as with any exception that nobody catches
  EXPECT_NE(outcome.err.find("budget"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("run once without a budget"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("Session::"), std::string::npos) << "the program has no session: " << outcome.err;
}

TEST_F(Preloaded, ReportAndTraceAreWrittenWhenTheProgramExits) {
  const testing::TemporaryFolder folder;
  const std::string page = (folder / "page-%p.html").string(), trace = (folder / "step.json").string();
  const Outcome outcome = run_command({"run", "--budget", budget(), "--planning-time", "0.5", "--report", page,
                                       "--trace", trace, "--", REPRISE_PROGRAM_TRAINER, "0"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, plain());
  EXPECT_FALSE(read_trace(trace).operators.empty());
  const std::size_t at = outcome.err.find("report: ");
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const std::string written = outcome.err.substr(at + 8, outcome.err.find('\n', at) - at - 8);
  EXPECT_EQ(written.find("%p"), std::string::npos);
  EXPECT_GT(std::filesystem::file_size(written), 1000u);
}

#endif

}  // namespace
}  // namespace reprise
