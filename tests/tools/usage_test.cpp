// Wrong usage and bad input: exit code 2, one line on stderr that says what is wrong, nothing on stdout.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "paths.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/files.h"
#include "reprise_process.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

using testing::one_line;
using testing::Outcome;
using testing::run_command;

class Usage : public ::testing::Test {
 protected:
  Usage() { write_trace(file_, testing::random_training_step(1, 6)); }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& words) const {
    const Outcome outcome = run_command(arguments);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_TRUE(one_line(outcome.err)) << outcome.err;
    EXPECT_EQ(outcome.out, "") << words;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << "expected: " << words << "\nfound: " << outcome.err;
  }

  const testing::TemporaryFolder folder_;
  const std::string file_ = (folder_ / "step.json").string();
};

TEST_F(Usage, WithoutACommandOrWithAnUnknownOne) {
  expect_refused({}, "reprise: COMMAND is missing; see reprise --help");
  expect_refused({"bake"}, "there is no command 'bake'");
  expect_refused({"--fast"}, "not understood: --fast");
}

TEST_F(Usage, MissingAndUnknownArguments) {
  expect_refused({"plan"}, "reprise plan: FILE is missing; see reprise plan --help");
  expect_refused({"plan", file_}, "--budget is missing");
  expect_refused({"plan", file_, "--budget"}, "--budget needs a value");
  expect_refused({"plan", file_, "--budget", "1x", "--fast"}, "not understood: --fast");
  expect_refused({"plan", file_, "--budget", "1x", "--budget", "2x"}, "--budget can be given only once");
  expect_refused({"simulate", file_}, "PLAN is missing");
  expect_refused({"planners", "more"}, "not understood: more");
  expect_refused({"inspect", file_, "plan.json", "more"}, "not understood: more");
}

TEST_F(Usage, ValuesThatAnOptionCannotHave) {
  expect_refused({"plan", file_, "--budget", "lots"}, "--budget: 'lots' is not an amount of bytes");
  expect_refused({"plan", file_, "--budget", "-1"}, "'-1' is not an amount of bytes");
  expect_refused({"plan", file_, "--budget", ""}, "--budget");
  expect_refused({"plan", file_, "--budget", "1x", "--planner", "guess"},
                 "'guess', but there is no such planner; there are: best,");
  expect_refused({"plan", file_, "--budget", "1x", "--planner", "segments"}, "needs --segments K");
  expect_refused({"plan", file_, "--budget", "1x", "--segments", "0"}, "--segments: '0' is no whole number");
  expect_refused({"plan", file_, "--budget", "1x", "--segments", "9999"}, "segments is 9999");
  expect_refused({"plan", file_, "--budget", "1x", "--moves", "-3"}, "--moves: '-3' is no whole number");
  expect_refused({"plan", file_, "--budget", "1x", "--seed", "18446744073709551616"}, "--seed: '18446744073709551616'");
  expect_refused({"plan", file_, "--budget", "1x", "--time-limit", "0"}, "--time-limit: '0' is no number of seconds");
  expect_refused({"curve", file_, "--points", "1"}, "--points: '1' is no whole number from 2 to 1000");
}

TEST_F(Usage, FilesThatCannotBeRead) {
  const std::string whole = folder_.read("step.json");
  folder_.write("truncated.json", whole.substr(0, whole.size() / 2));
  folder_.write("foreign.json", "{\"hello\": \"world\"}");
  for (const char* command : {"inspect", "curve"}) {
    expect_refused({command, (folder_ / "missing.json").string()}, "missing.json: cannot be read: No such file");
    expect_refused({command, (folder_ / "truncated.json").string()}, "truncated");
    expect_refused({command, (folder_ / "foreign.json").string()}, "foreign.json: ");
    expect_refused({command, folder_.path().string()}, "it is a folder");
  }
  expect_refused({"plan", (folder_ / "missing.json").string(), "--budget", "1x"}, "missing.json: cannot be read");
  expect_refused({"simulate", file_, (folder_ / "missing.json").string()}, "missing.json: cannot be read");
  expect_refused({"simulate", file_, file_}, "this is a trace, not a plan");
}

TEST_F(Usage, FilesThatCannotBeWrittenAreFoundOutBeforePlanning) {
  const std::string nowhere_to = (folder_ / "no" / "plan.json").string();
  expect_refused({"plan", file_, "--budget", "0.7x", "--time-limit", "100", "--output", nowhere_to},
                 "its folder does not exist");
  expect_refused({"curve", file_, "--time-limit", "100", "--output", nowhere_to}, "its folder does not exist");
  expect_refused({"curve", file_, "--output", folder_.path().string()}, "it is a folder");
  expect_refused({"plan", file_, "--budget", "1x", "--output", ""}, "--output is empty");
  expect_refused({"example", "--output", nowhere_to}, nowhere_to + ": cannot be written");
}

TEST_F(Usage, HelpIsPrintedOnStdoutAndFitsATerminal) {
  for (const std::string command :
       {"", "plan", "simulate", "curve", "fit", "inspect", "report", "planners", "example"}) {
    const Outcome outcome = command.empty() ? run_command({"--help"}) : run_command({command, "--help"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("Usage: reprise" + (command.empty() ? "" : " " + command)), std::string::npos)
        << outcome.out;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST_F(Usage, HelpOfPlanExplainsEveryOptionAndExitCode) {
  const std::string help = run_command({"plan", "--help"}).out;
  for (const char* part :
       {"--budget BYTES", "--planner NAME", "--segments K", "--every N", "--slots S", "--time-limit SECONDS",
        "--moves N", "--seed N", "--output FILE", "--json", "smallest_feasible_bytes", "Exit codes:", "Examples:"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part;
  }
}

// A trace may be hours of measuring: no option replaces a file that the same command reads, whatever it is called.
TEST_F(Usage, NoOutputReplacesAnInputOrAnotherOutput) {
  const auto contents = [&] {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  };
  const std::string before = contents(), other = (folder_ / "." / "step.json").string(),
                    link = (folder_ / "link.json").string(), page = (folder_ / "page.html").string();
  std::filesystem::create_symlink(file_, link);
  const std::string words = "the same command reads or writes that file for something else";
  for (const std::string& output : {file_, other, link}) {
    expect_refused({"plan", file_, "--budget", "0.8x", "--output", output}, words);
    expect_refused({"curve", file_, "--output", output}, words);
    expect_refused({"inspect", file_, "--perfetto", output}, words);
    expect_refused({"report", file_, "--budget", "0.8x", "--output", output}, words);
    expect_refused({"report", file_, "--budget", "0.8x", "--output", page, "--picture", output}, words);
  }
  expect_refused({"report", file_, "--budget", "0.8x", "--output", page, "--picture", page}, words);
  EXPECT_EQ(contents(), before);
  EXPECT_EQ(run_command({"inspect", file_, "--perfetto", "/dev/null"}).code, 0);
}

TEST_F(Usage, TheVersionIsTold) {
  const Outcome outcome = run_command({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("reprise ") && one_line(outcome.out)) << outcome.out;
}

TEST_F(Usage, PlannersListsThemAll) {
  const Outcome outcome = run_command({"planners"});
  EXPECT_EQ(outcome.code, 0);
  for (const PlannerInfo& planner : planners()) EXPECT_NE(outcome.out.find(planner.name), std::string::npos);
}

// Every command line of the README, the guide and docs/tuning.md: there is such a command, and it has these options.
TEST(Documents, NameOnlyCommandsAndOptionsThatThereAre) {
  int found = 0;
  for (const char* document : {"README.md", "docs/guide.md", "docs/tuning.md"}) {
    std::ifstream file(std::string(REPRISE_SOURCE_DIR "/") + document);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string program, command;
      if (!line.starts_with("    ") || !(words >> program >> command)) continue;
      if (program != "reprise" && !(program == "./run" && command[0] != '-' && command[0] != '#')) continue;
      ++found;
      const Outcome help = run_command({command, "--help"});
      EXPECT_EQ(help.code, 0) << document << ": " << line;
      for (std::string word; words >> word && word != "--" && word != "#";) {
        if (!word.starts_with("--")) continue;
        EXPECT_NE(help.out.find("  " + word), std::string::npos) << document << ": " << line << ": " << word;
      }
    }
  }
  EXPECT_GE(found, 8);
}

}  // namespace
}  // namespace reprise
