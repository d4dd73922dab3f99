// Names in traces and of files come from others. No command prints anything of them that a terminal would act on.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "reprise/plan/planner.h"
#include "reprise/trace/files.h"
#include "reprise_process.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

using testing::one_line;
using testing::Outcome;
using testing::run_command;

// Sets the title of the window, clears the screen by an escape of one character, deletes, and turns the text around.
const std::string hostile =
    "\x1b]0;owned\x07\xc2\x9b"
    "2J\x7f\xe2\x80\xae\xe2\x81\xa6\nend\r";

// Returns what is in the text that a terminal would act on; empty: nothing.
std::string harm_in(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0; };
    if ((byte(i) < 0x20 && text[i] != '\n') || byte(i) == 0x7f || byte(i) == 0xff) {
      return "byte " + std::to_string(byte(i)) + " at " + std::to_string(i);
    }
    if (byte(i) == 0xc2 && byte(i + 1) < 0xa0) return "C1 at " + std::to_string(i);
  }
  for (const std::string_view direction : {"\xe2\x80\xae", "\xe2\x81\xa6"}) {
    if (text.find(direction) != std::string::npos) return "a change of direction";
  }
  return "";
}

Outcome run(const std::vector<std::string>& words) {
  const Outcome outcome = run_command(words);
  std::string line;
  for (const std::string& word : words) line += word + " ";
  EXPECT_EQ(harm_in(outcome.out), "") << line << "\n" << outcome.out;
  EXPECT_EQ(harm_in(outcome.err), "") << line << "\n" << outcome.err;
  if (!outcome.err.empty()) EXPECT_TRUE(one_line(outcome.err)) << line << "\n" << outcome.err;
  return outcome;
}

void expect_code(const std::vector<std::string>& words, int code) {
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
}

class HostileNames : public ::testing::Test {
 protected:
  HostileNames() {
    for (Operator& op : trace_.operators) op.name = op.module = hostile;
    for (Moment& moment : trace_.moments) {
      if (!moment.runs) moment.name = hostile;
    }
    trace_.name = hostile;
    Tier tier{hostile, std::nullopt, false, {}};
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (trace_.values[v].maker) tier.entries.push_back({v, trace_.values[v].bytes, 0, 0});
    }
    trace_.tiers = {tier};
    write_trace(file_, trace_);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // The name of a trace in one line of JSON: it is as it was.
  static std::string name_in(const Outcome& outcome) {
    return nlohmann::json::parse(outcome.out).at("name").get<std::string>();
  }

  Trace trace_ = testing::random_training_step(8, 10);
  const testing::TemporaryFolder folder_;
  const std::string file_ = path("step.json");
};

TEST_F(HostileNames, InATraceArePrintedHarmlesslyByEveryCommand) {
  expect_code({"inspect", file_}, 0);
  EXPECT_EQ(name_in(run({"inspect", file_, "--json"})), hostile);
  expect_code({"inspect", file_, "--perfetto", path("perfetto.json")}, 0);
  const std::string plan = path("plan.json");
  expect_code({"plan", file_, "--budget", "0.8x", "--moves", "200", "--output", plan}, 0);
  EXPECT_EQ(name_in(run({"plan", file_, "--budget", "0.8x", "--moves", "200", "--json"})), hostile);
  expect_code({"plan", file_, "--budget", "1", "--moves", "200"}, 3);
  EXPECT_EQ(name_in(run({"plan", file_, "--budget", "1", "--moves", "200", "--json"})), hostile);
  for (const PlannerInfo& planner : planners()) {
    run({"plan", file_, "--budget", "0.8x", "--moves", "200", "--planner", std::string(planner.name)});
  }
  expect_code({"simulate", file_, plan}, 0);
  EXPECT_EQ(name_in(run({"simulate", file_, plan, "--json"})), hostile);
  expect_code({"curve", file_, "--time-limit", "0.5", "--points", "3"}, 0);
  EXPECT_EQ(name_in(run({"curve", file_, "--time-limit", "0.5", "--points", "3", "--json"})), hostile);
  expect_code({"report", file_, plan, "--no-curve", "--output", path("page.html"), "--picture", path("page.svg")}, 0);
  expect_code({"fit", file_, file_, "--sizes", "4,8", "--budget", "1GiB", "--time-limit", "0.5"}, 0);
  for (const char* file : {"step.json", "perfetto.json", "plan.json", "page.html", "page.svg"}) {
    EXPECT_EQ(harm_in(folder_.read(file)), "") << file;
  }
}

TEST_F(HostileNames, OfWhatAPlanDoesWrongArePrintedHarmlessly) {
  const std::string plan = path("plan.json");
  const auto expect_broken = [&](std::vector<Action> actions) {
    write_plan(plan, {keep_everything(trace_).budget, trace_.tiers, std::move(actions)});
    expect_code({"simulate", file_, plan}, 1);
    expect_code({"simulate", file_, plan, "--json"}, 1);
    expect_code({"report", file_, plan, "--no-curve", "--output", path("page.html")}, 2);
  };
  const Id from_outside = [&] {
    Id v = 0;
    while (trace_.values[v].maker) ++v;
    return v;
  }();
  expect_broken({});                                              // names the moment that has not run
  expect_broken({Action::run(0), Action::run(0)});                // and what is done
  expect_broken({Action::run(0), Action::put(from_outside, 0)});  // names the tier
}

TEST_F(HostileNames, InWhichTwoTracesDifferArePrintedHarmlessly) {
  Trace other = trace_;
  other.operators[0].name += "\x1b[1m";
  write_trace(path("other.json"), other);
  expect_code({"fit", file_, path("other.json"), "--sizes", "4,8", "--budget", "1GiB"}, 2);
}

TEST_F(HostileNames, OfKeysAndFormatsInErrorsArePrintedHarmlessly) {
  const auto expect_refused = [&](const std::string& json) {
    expect_code({"inspect", folder_.write("bad.json", json).string()}, 2);
  };
  const std::string escaped = "\\u001b]0;owned\\u0007\\u009b2J\\u007f\\u202e\\u2066\\nend";
  const std::string raw =
      "\xc2\x9b"
      "2J\x7f\xe2\x80\xae\xe2\x81\xa6";
  for (const std::string& name : {escaped, raw}) {
    expect_refused("{\"format\": \"" + name + "\"}");
    expect_refused("{\"format\": \"reprise-trace\", \"version\": 1, \"" + name + "\": 1}");
    expect_refused("{\"cost\": [1], \"size\": [1], \"edges\": [], \"x\": {\"" + name + "\": nothing}}");
  }
  for (const std::string bytes : {"\x1b", "\xc2\x9b", "\x7f", "\xff", "\xe2\x80\xae"}) expect_refused("{" + bytes);
}

TEST_F(HostileNames, OfFilesArePrintedHarmlesslyByEveryCommand) {
  const std::string name = hostile + "\xff", missing = path(name + "missing"), bad = folder_.write(name + "bad", "{");
  const std::string copy = path(name + ".json"), folder = path(name + "folder"), plan = path(name + "plan");
  std::filesystem::copy_file(file_, copy);
  std::filesystem::create_directory(folder);
  const std::vector<std::string> sizes = {"--sizes", "4,8", "--budget", "1GiB", "--time-limit", "0.5"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  for (const std::string& file : {missing, bad, folder}) {
    expect_code({"inspect", file}, 2);
    expect_code({"inspect", file_, "--perfetto", file + "/no/folder"}, 2);
    expect_code({"plan", file, "--budget", "1x"}, 2);
    expect_code({"simulate", file_, file}, 2);
    expect_code({"curve", file}, 2);
    expect_code(with({"fit", file, file_}, sizes), 2);
    expect_code({"report", file}, 2);
    expect_code({"train", "--data", file, "--save", file}, 2);
  }
  for (const char* command : {"plan", "curve", "report"}) {
    expect_code({command, file_, "--budget", "1x", "--output", folder}, 2);
    expect_code({command, file_, "--output", folder + "/no/folder"}, 2);
  }
  expect_code({"inspect", copy}, 0);
  expect_code({"plan", copy, "--budget", "0.8x", "--moves", "200", "--output", plan}, 0);
  expect_code({"simulate", copy, plan}, 0);
  expect_code({"curve", copy, "--time-limit", "0.5", "--points", "3", "--output", path(name + "svg")}, 0);
  expect_code({"report", copy, plan, "--no-curve", "--output", path(name + "html"), "--picture", path(name + "pic")},
              0);
  expect_code(with({"fit", copy, file_, "--output", path(name + "fit")}, sizes), 0);
  expect_code({"example", "--output", path(name + "example")}, 0);
  expect_code({"run", "--", missing}, 127);
  EXPECT_NE(run({"run", "--budget", "1GiB", "--", bad}).code, 0);
}

TEST_F(HostileNames, OnTheCommandLineArePrintedHarmlessly) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{hostile},
                                             {"--" + hostile},
                                             {"plan", file_, "--" + hostile},
                                             {"plan", file_, "--budget", hostile},
                                             {"plan", file_, "--budget", "1x", "--planner", hostile},
                                             {"plan", file_, "--budget", "1x", "--seed", hostile},
                                             {"curve", file_, "--time-limit", hostile},
                                             {"fit", file_, file_, "--budget", "1GiB", "--sizes", hostile},
                                             {"run", "--budgets", hostile, "--", "true"},
                                             {"run", "--verify", hostile, "--", "true"},
                                             {"completion", hostile}}) {
    expect_code(words, 2);
  }
  expect_code({"run", "--", hostile}, 127);
}

}  // namespace
}  // namespace reprise
