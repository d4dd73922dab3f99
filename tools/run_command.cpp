// reprise run: an unmodified program under a budget.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "command.h"
#include "device_budgets.h"
#include "libtorch_program.h"
#include "program.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "trace/printable.h"

namespace reprise::tools {
using namespace internal;
namespace {

// Those of env(1) and the shells.
constexpr int exit_cannot_be_started = 126;
constexpr int exit_not_found = 127;

struct RunArguments {
  std::string budget, device, budgets, disk, disk_bytes, host, plans, planning_share, planning_time, verify, summary,
      report, trace;
  bool no_pack = false;
  bool if_possible = false;
  std::vector<std::string> program;  // with its arguments
};

constexpr const char* run_summary = "run an unmodified LibTorch program inside a byte budget";

constexpr const char* run_description =
    "Starts the program with Reprise's library loaded into it. The program itself is not changed: its operators are "
    "recorded, live bytes of LibTorch's allocator for the device where its parameters are stay within the budget, and "
    "its results stay the same, bit for bit. Steps are found automatically: a step ends when backward is done and "
    "nothing that autograd saved is "
    "pending. A thread is watched from its first backward graph on.\n"
    "The program's output and exit code are its own. When it exits, a summary is printed on stderr. If the budget "
    "cannot be kept, the allocation that would pass it throws reprise::BudgetError, which ends most programs, with "
    "a message that names the bytes that are needed.\n"
    "Every option is also an environment variable, for schedulers that start programs themselves: set LD_PRELOAD to "
    "the file that `reprise run --library` prints, and REPRISE_BUDGET, REPRISE_DEVICE, REPRISE_BUDGETS, "
    "REPRISE_DISK, REPRISE_DISK_BYTES, REPRISE_HOST, REPRISE_PLANS, REPRISE_PLANNING_SHARE, REPRISE_PLANNING_TIME, "
    "REPRISE_VERIFY, REPRISE_PACK (on, off), REPRISE_SUMMARY, REPRISE_REPORT, REPRISE_TRACE, REPRISE_IF_POSSIBLE. "
    "Processes without LibTorch are left alone.";

constexpr const char* run_footer = R"(Examples:
  reprise run --budget 2GiB -- ./my_trainer --epochs 10
  reprise run --budget 2GiB --report page.html -- ./my_trainer
  reprise run --budget 8GiB --device npu:0 -- ./my_trainer
  reprise run --budget 8GiB --device npu:0 --host 16GiB -- ./my_trainer
  reprise run --budgets npu:0=8GiB,cpu=2GiB -- ./my_trainer
  reprise run -- ./my_trainer                      # no limit: prints the memory it needed
  LD_PRELOAD=$(reprise run --library) REPRISE_BUDGET=2GiB mpirun -n 2 ./my_trainer

Exit codes:
  the exit code of the program, or
  2    wrong usage; the program cannot be put under a budget, and was not started
  126  the program could not be started
  127  there is no such program
)";

void add_options(CLI::App& command, RunArguments& arguments) {
  const auto one_of = [](std::vector<std::string> words, const char* expected) {
    const auto check = [words = std::move(words), expected](const std::string& text) -> std::string {
      if (std::find(words.begin(), words.end(), text) != words.end()) return {};
      return fmt::format("'{}' is none of {}", text, expected);
    };
    return CLI::Validator(check, "");
  };
  command.add_option("PROGRAM", arguments.program, "The program and its arguments, behind --.")->type_name("");
  command
      .add_option(
          "--budget", arguments.budget,
          "The most bytes of LibTorch's allocator for the device that may be live: a number of bytes, or with a "
          "unit, as 2GiB or 500MB. Default: nothing is limited or evicted, and the summary prints the memory "
          "that was needed.")
      ->type_name("AMOUNT");
  command
      .add_option(
          "--device", arguments.device,
          "The device whose bytes the budget limits, by LibTorch's name for it: cpu, cuda:0, npu:0. One that gets its "
          "name only while the program runs is privateuseone:0. Whether its bytes can be counted shows when the "
          "program saves its first tensor for backward; if not, that is an error there. Default: the device of the "
          "parameters.")
      ->type_name("DEVICE");
  command
      .add_option("--budgets", arguments.budgets,
                  "Budgets of several devices at once, instead of --budget and --device. Plans are made for the first.")
      ->type_name("DEVICE=AMOUNT,...");
  command
      .add_option("--disk", arguments.disk,
                  "Use a disk below the memory of the CPU: values go to files in this folder, which has to exist, "
                  "instead of being evicted, where that is cheaper or the only way. Files are removed in the end. "
                  "Without --device and --budgets, the budget is one of the CPU's bytes then. Default: no disk.")
      ->type_name("FOLDER");
  command
      .add_option("--disk-bytes", arguments.disk_bytes,
                  "The most bytes of files with --disk: a number of bytes, or with a unit. Default: no limit.")
      ->type_name("AMOUNT");
  command
      .add_option(
          "--host", arguments.host,
          "Use memory of the host below that of the accelerator that --device or --budgets names: so many bytes "
          "of it, pinned, for each thread that trains. Values are copied there instead of being evicted, where "
          "that is cheaper or the only way. Default: none.")
      ->type_name("AMOUNT");
  command
      .add_option("--report", arguments.report,
                  "Write an HTML page about the last step to this file when the program exits. %p in the name "
                  "becomes the process id.")
      ->type_name("FILE");
  command
      .add_option("--trace", arguments.trace,
                  "Write the trace of the last step to this file, for `reprise plan`, `curve`, `inspect` and "
                  "`report`. %p in the name becomes the process id.")
      ->type_name("FILE");
  command
      .add_option("--plans", arguments.plans,
                  "Keep plans in this folder. The next run of the program follows them from its second step on.")
      ->type_name("FOLDER");
  command
      .add_option("--planning-share", arguments.planning_share,
                  "The CPU time that planning may take, as a share of that of all steps so far. 0: no plans; inf: "
                  "every trace is planned at once. Default: 0.05.")
      ->type_name("SHARE")
      ->check(number(0, std::numeric_limits<double>::infinity()));
  command
      .add_option("--planning-time", arguments.planning_time,
                  "How long to search for a plan at most, on a thread of its own. 0: no plans. Default: 5.")
      ->type_name("SECONDS")
      ->check(number(0, 1e6));
  command
      .add_option("--verify", arguments.verify,
                  "When to compare recomputed values with the evicted ones: never, first-time or always. Default: "
                  "first-time.")
      ->type_name("WHEN")
      ->check(one_of({"never", "first-time", "always"}, "never, first-time, always"));
  command.add_flag("--no-pack", arguments.no_pack, "Do not pack masks and indices; keep or replay them.");
  command
      .add_option("--summary", arguments.summary,
                  "Print the summary on stderr at the end as text, as json, or not at all (none). Default: text.")
      ->type_name("FORM")
      ->check(one_of({"text", "json", "none"}, "text, json, none"));
  command.add_flag("--if-possible", arguments.if_possible,
                   "Run the program without Reprise if it cannot be put under a budget, instead of not at all.");
}

void check_bytes(const char* option, const std::string& text) try {
  if (!text.empty()) (void)parse_bytes(text);
} catch (const BadOption& error) {
  throw UsageError(fmt::format("{}: {}", option, error.what()));
}

// What the program will be told: by an option, or by the environment, which an option replaces.
std::string told(const std::string& option, const char* variable) {
  const char* const value = secure_getenv(variable);
  return option.empty() && value ? value : option;
}

void check_devices(const RunArguments& arguments) try {
  if (arguments.budgets.empty()) return;
  if (!arguments.budget.empty() || !arguments.device.empty()) {
    throw UsageError("--budgets has the budget of each device: it stands instead of --budget and --device");
  }
  (void)parse_device_budgets(arguments.budgets);
} catch (const BadOption& error) {
  throw UsageError(fmt::format("--budgets: {}", error.what()));
}

bool is_cpu(const std::string& device) {
  return device == "cpu" || device.starts_with("cpu:");
}

// By --device or --budgets, or by the environment.
std::vector<std::string> named_devices(const RunArguments& arguments) {
  std::vector<std::string> all;
  const std::string device = told(arguments.device, "REPRISE_DEVICE"),
                    budgets = told(arguments.budgets, "REPRISE_BUDGETS");
  if (!device.empty()) all.push_back(device);
  if (budgets.empty()) return all;
  for (auto& [name, bytes] : parse_device_budgets(budgets)) all.push_back(name);
  return all;
}

void check_tiers(const RunArguments& arguments) {
  if (!arguments.disk_bytes.empty() && told(arguments.disk, "REPRISE_DISK").empty()) {
    throw UsageError("--disk-bytes is about a disk, and there is none: name its folder with --disk");
  }
  if (arguments.disk.empty() && arguments.host.empty()) return;
  const std::vector<std::string> devices = named_devices(arguments);
  if (!arguments.disk.empty() && !devices.empty() && std::none_of(devices.begin(), devices.end(), is_cpu)) {
    throw UsageError(fmt::format(
        "--disk is for values of the CPU, and the budget is one of {}. Below an accelerator there is --host",
        devices.front()));
  }
  if (!arguments.host.empty() && std::all_of(devices.begin(), devices.end(), is_cpu)) {
    throw UsageError("--host is memory below that of an accelerator: name the accelerator with --device or --budgets");
  }
}

// An empty value leaves what the environment says already.
void set(const char* name, const std::string& value) {
  if (!value.empty()) setenv(name, value.c_str(), 1);
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

void set_environment(const RunArguments& arguments, const std::filesystem::path& library) {
  set("LD_PRELOAD", with_preloaded(library));
  set("REPRISE_BUDGET", arguments.budget);
  set("REPRISE_DEVICE", arguments.device);
  set("REPRISE_BUDGETS", arguments.budgets);
  set("REPRISE_DISK", absolute(arguments.disk));
  set("REPRISE_DISK_BYTES", arguments.disk_bytes);
  set("REPRISE_HOST", arguments.host);
  // The program may go to another folder before it exits.
  set("REPRISE_REPORT", absolute(arguments.report));
  set("REPRISE_TRACE", absolute(arguments.trace));
  set("REPRISE_PLANS", absolute(arguments.plans));
  set("REPRISE_PLANNING_SHARE", arguments.planning_share);
  set("REPRISE_PLANNING_TIME", arguments.planning_time);
  set("REPRISE_VERIFY", arguments.verify);
  set("REPRISE_PACK", arguments.no_pack ? "off" : "");
  set("REPRISE_SUMMARY", arguments.summary);
  set("REPRISE_IF_POSSIBLE", arguments.if_possible ? "1" : "");
}

void say(const std::string& sentence) {
  fmt::print(stderr, "reprise run: {}\n", printable_line(sentence));
}

int start(const std::filesystem::path& program, const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  execv(program.c_str(), list.data());
  say(fmt::format("{} cannot be started: {}", program.string(), std::strerror(errno)));
  return exit_cannot_be_started;
}

std::filesystem::path library(const char* name) {
  const auto path = libtorch_library(name);
  if (!path) throw UsageError(without_libtorch(name));
  return *path;
}

int run_program(const RunArguments& arguments) {
  if (arguments.program.empty()) throw UsageError("PROGRAM is missing; see reprise run --help");
  check_bytes("--budget", arguments.budget);
  check_bytes("--disk-bytes", arguments.disk_bytes);
  check_bytes("--host", arguments.host);
  check_devices(arguments);
  check_tiers(arguments);
  if (!arguments.report.empty()) require_writable(arguments.report, {});
  if (!arguments.trace.empty()) require_writable(arguments.trace, {arguments.report});
  const std::string& name = arguments.program.front();
  const auto program = find_program(name);
  if (!program) {
    say(fmt::format("there is no program '{}' that can be executed", name));
    return exit_not_found;
  }
  const std::filesystem::path preloaded = library("libreprise_preload.so");
  auto why_not = preload_obstacle(preloaded);
  if (!why_not) why_not = obstacle(*program, library("libreprise_live.so"));
  if (why_not) {
    if (!arguments.if_possible) throw UsageError(*why_not + ". With --if-possible the program runs untouched");
    say(*why_not + ". The program runs untouched");
    return start(*program, arguments.program);
  }
  set_environment(arguments, preloaded);
  return start(*program, arguments.program);
}

}  // namespace

void add_run(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "run", run_summary, run_description, run_footer);
  const auto arguments = std::make_shared<RunArguments>();
  const auto only_name = std::make_shared<bool>(false);
  add_options(*command, *arguments);
  command->add_flag("--library", *only_name, "Print the file for LD_PRELOAD and exit.");
  command->callback([arguments, only_name, &run] {
    run = [arguments, only_name] {
      if (!*only_name) return run_program(*arguments);
      const std::filesystem::path preloaded = library("libreprise_preload.so");
      if (const auto why_not = preload_obstacle(preloaded)) throw UsageError(*why_not);
      if (shown(preloaded) != preloaded) throw UsageError(preloaded.string() + " cannot be printed as it is");
      print_out(preloaded.string() + "\n");
      return int{exit_done};
    };
  });
}

}  // namespace reprise::tools
