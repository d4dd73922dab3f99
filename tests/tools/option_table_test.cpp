// The options of a session and of `reprise run`, which stand in one table.
#include "torch/api/option_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "paths.h"
#include "reprise_process.h"

namespace reprise {
namespace {

using namespace internal;
using testing::Outcome;
using testing::run_command;

std::string problem(const std::function<void()>& act) {
  try {
    act();
  } catch (const BadOption& error) {
    return error.what();
  }
  return "";
}

TEST(OptionTable, HasEveryMemberOfSessionOptions) {
  // A member that is added does not fit in here: give it a row, a name below, and a line here.
  const auto& [budget, device, budgets, verify, pack, disk, host, planning_share, planning_time, plans, policy,
               evict_everything, name] = SessionOptions{};
  const auto& [folder, file_bytes] = disk;
  const auto& [host_bytes] = host;
  static_cast<void>(std::tie(budget, device, budgets, verify, pack, folder, file_bytes, host_bytes, planning_share,
                             planning_time, plans, policy, evict_everything, name));
  const std::set<std::string_view> members = {
      "budget",     "device",        "budgets", "verify", "pack",           "disk.folder",      "disk.bytes",
      "host.bytes", "planning_time", "plans",   "policy", "planning_share", "evict_everything", "name"};
  std::set<std::string_view> rows;
  for (const Option& option : options_of_run) {
    if (!option.name.empty()) rows.insert(option.name);
  }
  EXPECT_EQ(rows, members);
}

TEST(OptionTable, SetsWhatEachRowSays) {
  RunSettings settings;
  const std::pair<const char*, const char*> texts[] = {{"--budget", "0.4x"},
                                                       {"--device", "cpu"},
                                                       {"--disk", "/tmp"},
                                                       {"--disk-bytes", "1KiB"},
                                                       {"--host", "2KiB"},
                                                       {"--verify", "always"},
                                                       {"--no-pack", "off"},
                                                       {"--planning-share", "inf"},
                                                       {"--planning-time", "0.25"},
                                                       {"--plans", "plans"},
                                                       {"--policy", "keep_products,aten::mm=evict"},
                                                       {"--evict-everything", "on"},
                                                       {"--name", "own"},
                                                       {"--summary", "json"},
                                                       {"--report", "page.html"},
                                                       {"--trace", "step.json"},
                                                       {"--if-possible", "1"},
                                                       {"--budgets", "npu:0=8KiB,cpu=none"}};
  std::size_t rows = 0;
  for (const Option& option : options_of_run) rows += option.set ? 1 : 0;
  EXPECT_EQ(std::size(texts), rows);
  for (const auto& [flag, text] : texts) set_option(settings, option_of(flag), flag, text);
  const SessionOptions& session = settings.session;
  EXPECT_EQ(session.budget, "0.4x");
  EXPECT_EQ(session.device, "cpu");
  ASSERT_EQ(session.budgets.size(), 2);
  EXPECT_EQ(session.budgets[0].device, "npu:0");
  EXPECT_EQ(session.budgets[0].budget, 8192);
  EXPECT_EQ(session.budgets[1].budget, no_limit);
  EXPECT_EQ(session.disk.folder, "/tmp");
  EXPECT_EQ(session.disk.bytes, 1024);
  EXPECT_EQ(session.host.bytes, 2048);
  EXPECT_EQ(session.verify, Verify::always);
  EXPECT_FALSE(session.pack);
  EXPECT_TRUE(std::isinf(session.planning_share));
  EXPECT_EQ(session.planning_time, std::chrono::milliseconds(250));
  EXPECT_EQ(session.plans, "plans");
  EXPECT_TRUE(session.evict_everything);
  EXPECT_EQ(session.name, "own");
  const std::vector<std::pair<std::string, std::string>> policy = {{"keep_products", ""}, {"aten::mm", "evict"}};
  EXPECT_EQ(settings.policy, policy);
  EXPECT_EQ(settings.summary, SummaryForm::json);
  EXPECT_EQ(settings.report, "page.html");
  EXPECT_EQ(settings.trace, "step.json");
  EXPECT_TRUE(settings.if_possible);
}

TEST(OptionTable, AnErrorNamesTheOptionTheValueAndWhatItMustBe) {
  const auto refused = [](const char* flag, const char* text) {
    return problem([&] {
      RunSettings settings;
      set_option(settings, option_of(flag), flag, text);
    });
  };
  EXPECT_EQ(refused("--budget", "much"),
            "--budget is 'much': it must be a number of bytes such as 1234, 512MiB or 1.5GB, a share of the plain peak "
            "such as 0.8x, or none");
  EXPECT_EQ(refused("--budget", "auto").substr(0, 32), "--budget is 'auto': it must be a");
  EXPECT_EQ(refused("--budget", "7.5"), "--budget is '7.5': it must be whole bytes");
  EXPECT_EQ(refused("--disk-bytes", "0.5x"),
            "--disk-bytes is '0.5x': it must be a number of bytes such as 1234, 512MiB or 1.5GB");
  EXPECT_EQ(refused("--verify", "often"), "--verify is 'often': it must be never, first-time or always");
  EXPECT_EQ(refused("--no-pack", "yes"), "--no-pack is 'yes': it must be on or off");
  EXPECT_EQ(refused("--planning-share", "-1"),
            "--planning-share is '-1': it must be a number that is not negative, or inf");
  EXPECT_EQ(refused("--planning-time", "nan"), "--planning-time is 'nan': it must be a number from 0 to 1000000");
  EXPECT_EQ(refused("--budgets", "cpu"), "--budgets is 'cpu': 'cpu' is not DEVICE=AMOUNT, as in cuda:0=8GiB,cpu=2GiB");
  EXPECT_EQ(refused("--budgets", "cpu=1,cpu=2"),
            "--budgets is 'cpu=1,cpu=2': 'cpu' has two budgets, and must have one only");
  EXPECT_EQ(refused("--budgets", "cpu=much").substr(0, 50), "--budgets is 'cpu=much': the budget of 'cpu' is 'm");
  EXPECT_EQ(refused("--policy", "=keep").substr(0, 37), "--policy is '=keep': it must be NAME=");
}

TEST(OptionTable, AVariableThatThereIsNotIsAnErrorThatNamesTheNearest) {
  const auto checked = [](std::vector<const char*> variables) {
    variables.push_back(nullptr);
    return problem([&] { check_variables(variables.data()); });
  };
  EXPECT_EQ(checked({"PATH=/", "REPRISE_BUDGET=1", "REPRISE_PACK=", "REPRISE_LONG=1", "REPRISES=1"}), "");
  EXPECT_EQ(checked({"REPRISE_BUGDET=1"}),
            "the environment has REPRISE_BUGDET, which is no variable of Reprise; the nearest is REPRISE_BUDGET");
  EXPECT_NE(checked({"REPRISE_PLANNING_SECONDS=1"}).find("nearest is REPRISE_PLANNING_"), std::string::npos);
}

// ---- the doors
// -------------------------------------------------------------------------------------------------------

TEST(OptionTable, TheCommandHasEveryFlagAndVariable) {
  const Outcome help = run_command({"run", "--help"});
  for (const Option& option : options_of_run) {
    EXPECT_NE(help.out.find(option.flag), std::string::npos) << option.flag;
    EXPECT_NE(help.out.find(option.variable()), std::string::npos) << option.variable();
  }
}

std::string table_for_the_page() {
  std::string text = "| C++ | Python | flag | default | |\n|---|---|---|---|---|\n";
  const auto code = [](std::string_view name) { return name.empty() ? "" : "`" + std::string(name) + "`"; };
  for (const Option& option : options_of_run) {
    std::string flag(option.flag);
    if (!option.placeholder.empty()) flag += " " + std::string(option.placeholder);
    text += "| " + code(option.name) + " | " + code(option.keyword) + " | " + code(flag) + " | " +
            std::string(option.standard) + " | " + std::string(option.help) + " |\n";
  }
  return text;
}

TEST(OptionTable, IsTheOneOfTheDocuments) {
  std::stringstream page;
  page << std::ifstream(REPRISE_SOURCE_DIR "/docs/tuning.md").rdbuf();
  EXPECT_NE(page.str().find(table_for_the_page()), std::string::npos)
      << "docs/tuning.md has another table. This is the one to put there:\n"
      << table_for_the_page();
}

}  // namespace
}  // namespace reprise
