// reprise train and reprise doctor, as a user runs them, in small.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "paths.h"
#include "reprise/trace/trace.h"
#include "reprise_process.h"
#ifdef REPRISE_WITH_LIBTORCH
#include "programs.h"
#endif

namespace reprise::train_test {
namespace {

using testing::Outcome;
using testing::run_command;

// ---- usage, which needs no LibTorch --------------------------------------------------------------------------------

void expect_refused(const std::vector<std::string>& options, const std::string& words) {
  std::vector<std::string> arguments = {"train"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome outcome = run_command(arguments);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(testing::one_line(outcome.err)) << outcome.err;
  EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
}

TEST(TrainUsage, OptionsThatContradictEachOtherAreNamed) {
  expect_refused({"--heads", "3"}, "--heads is 3, which does not divide --width 128");
  expect_refused({"--plain", "--compare"}, "--plain and --compare contradict each other");
  expect_refused({"--resume"}, "--resume needs --save");
  expect_refused({"--budget", "lots"}, "--budget");
  expect_refused({"--layers", "0"}, "--layers");
  expect_refused({"--dropout", "2"}, "--dropout");
  expect_refused({"--save", "/no/such/folder/model.pt"}, "its folder does not exist");
}

TEST(TrainUsage, HelpSaysWhatEveryOptionDoes) {
  const Outcome outcome = run_command({"train", "--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"--budget", "--layers", "--save", "--resume", "--metrics", "--report", "Exit codes"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
}

#ifdef REPRISE_WITH_LIBTORCH

class Train : public ::testing::Test {
 protected:
  // A model of a few milliseconds a step.
  static std::vector<std::string> small(const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"train", "--layers",        "2",  "--width",   "32", "--heads",
                                          "2",     "--batch",         "16", "--context", "32", "--threads",
                                          "1",     "--planning-time", "0.5"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return arguments;
  }
  static Outcome train(const std::vector<std::string>& options) { return run_command(small(options)); }

  static std::string fingerprint(const Outcome& outcome) {
    const std::size_t at = outcome.out.find("fingerprint");
    return at == std::string::npos ? "none" : outcome.out.substr(at, outcome.out.find('\n', at) - at);
  }

  static std::vector<nlohmann::json> lines(const std::string& text) {
    std::vector<nlohmann::json> result;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) result.push_back(nlohmann::json::parse(line));
    return result;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(Train, ComparesPlainAndBudgetAndSaysThatTheyAreIdentical) {
  const std::string page = (folder_ / "page.html").string();
  const Outcome outcome = train({"--compare", "--steps", "8", "--budget", "0.6x", "--report", page});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* word : {"plain", "in budget", "re-running", "identical: yes, bit for bit", "report: "}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << "\n" << outcome.out;
  }
  EXPECT_GT(std::filesystem::file_size(page), 1000u);
}

TEST_F(Train, EveryStepIsALineOfMetricsAndStaysInTheBudget) {
  const std::string file = (folder_ / "steps.jsonl").string();
  ASSERT_EQ(train({"--steps", "6", "--budget", "0.6x", "--metrics", file}).code, 0);
  const auto steps = lines(folder_.read("steps.jsonl"));
  ASSERT_EQ(steps.size(), 6u);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].at("step"), i + 1);
    EXPECT_LE(steps[i].at("peak_bytes").get<Bytes>(), steps[i].at("budget_bytes").get<Bytes>());
  }
  EXPECT_GT(steps[0].at("replays").get<int>(), 0);
}

// A run that was ended after four steps, and one that was never: all losses are the same, and what is trained.
TEST_F(Train, ARunThatWasEndedResumesBitForBit) {
  const std::string whole = (folder_ / "whole.pt").string(), parts = (folder_ / "parts.pt").string();
  const auto metrics = [&](const char* name) { return (folder_ / name).string(); };
  const Outcome first = train({"--steps", "8", "--budget", "0.6x", "--save", whole, "--metrics", metrics("whole")});
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(train({"--steps", "4", "--budget", "0.6x", "--save", parts, "--metrics", metrics("first")}).code, 0);
  const Outcome second =
      train({"--steps", "8", "--budget", "0.6x", "--save", parts, "--resume", "--metrics", metrics("second")});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.err.find("going on after step 4"), std::string::npos) << second.err;
  const auto expected = lines(folder_.read("whole"));
  auto found = lines(folder_.read("first"));
  for (const auto& line : lines(folder_.read("second"))) found.push_back(line);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].at("loss"), expected[i].at("loss")) << i;
  EXPECT_EQ(fingerprint(second), fingerprint(first));
  EXPECT_NE(fingerprint(second), "none");
}

// Whenever the run is killed, the file is whole, and what follows is as if nothing had happened.
TEST_F(Train, AKilledRunResumesBitForBit) {
  const std::string file = (folder_ / "model.pt").string();
  std::vector<std::string> killed = small({"--steps", "1000000", "--plain", "--save", file, "--save-every", "1"});
  killed.insert(killed.begin(), REPRISE_COMMAND);
  testing::kill_when_there(killed, file);
  const Outcome resumed = train({"--steps", "60", "--plain", "--save", file, "--resume"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("going on after step"), std::string::npos) << resumed.err;
  const Outcome whole = train({"--steps", "60", "--plain"});
  EXPECT_EQ(fingerprint(resumed), fingerprint(whole));
  EXPECT_NE(fingerprint(whole), "none");
}

TEST_F(Train, ResumingWithOtherOptionsIsRefused) {
  const std::string file = (folder_ / "model.pt").string();
  ASSERT_EQ(train({"--steps", "1", "--plain", "--save", file}).code, 0);
  const Outcome outcome = train({"--steps", "2", "--plain", "--save", file, "--resume", "--seed", "9"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("saved with other options"), std::string::npos) << outcome.err;
}

TEST_F(Train, AFileThatIsNoSavedTrainingIsRefused) {
  const std::string file = (folder_ / "model.pt").string();
  std::ofstream(file) << "nothing of the kind";
  const Outcome outcome = train({"--steps", "2", "--plain", "--save", file, "--resume"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(testing::one_line(outcome.err)) << outcome.err;
  EXPECT_NE(outcome.err.find("no saved training"), std::string::npos) << outcome.err;
}

TEST_F(Train, ABudgetThatCannotBeKeptHasItsOwnExitCode) {
  const Outcome outcome = train({"--steps", "2", "--budget", "200KiB"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("budget"), std::string::npos) << outcome.err;
}

TEST_F(Train, LearnsFromAFileOfTheUsers) {
  const std::string file = (folder_ / "text").string();
  std::ofstream(file) << std::string(200, 'a') + std::string(200, 'b');
  EXPECT_EQ(train({"--steps", "2", "--plain", "--data", file}).code, 0);
  std::ofstream(file) << "short";
  const Outcome outcome = train({"--steps", "2", "--plain", "--data", file});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--data has 5 characters"), std::string::npos) << outcome.err;
}

TEST(Doctor, SaysThatASessionWorksHere) {
  const Outcome outcome = run_command({"doctor", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  std::istringstream findings(outcome.out);
  std::string line;
  std::map<std::string, std::string> states;
  while (std::getline(findings, line)) {
    const auto finding = nlohmann::json::parse(line);
    states[finding.at("what").get<std::string>()] = finding.at("state").get<std::string>();
  }
  EXPECT_EQ(states["allocator"], "good");
  EXPECT_EQ(states["session"], "good");
}

// What runs is this LibTorch. Only its answer to the question for its version is another library's.
TEST(DoctorWithAnotherVersion, SaysWhichItIsAndASessionRefusesInsteadOfRecording) {
  const Outcome outcome =
      testing::run_program({REPRISE_COMMAND, "doctor"}, {"LD_PRELOAD=" REPRISE_PROGRAM_OTHER_VERSION});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("no   LibTorch        9.9.9"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("this process runs LibTorch 9.9.9, and Reprise was compiled against"), std::string::npos)
      << outcome.out;
}

#endif

}  // namespace
}  // namespace reprise::train_test
