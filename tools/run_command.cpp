// reprise run: an unmodified program under a budget.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "command.h"
#include "libtorch_program.h"
#include "program.h"
#include "reprise/trace/error.h"
#include "torch/api/option_table.h"
#include "trace/printable.h"

namespace reprise::tools {
using namespace internal;
namespace {

// Those of env(1) and the shells.
constexpr int exit_cannot_be_started = 126;
constexpr int exit_not_found = 127;

// The texts of the options that were given, by their place in the table, and the program.
struct RunArguments {
  std::array<std::string, options_of_run.size()> texts;
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
    "the file that `reprise run --library` prints, and {}. An option without a value is on or off there. A variable "
    "that begins with REPRISE_ and is none of these is an error. Processes without LibTorch are left alone.";

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

std::string described() {
  std::string variables;
  for (const Option& option : options_of_run) {
    if (!option.flag.empty()) variables += (variables.empty() ? "" : ", ") + option.variable();
  }
  return fmt::format(fmt::runtime(run_description), variables);
}

void add_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("PROGRAM", arguments.program, "The program and its arguments, behind --.")->type_name("");
  for (std::size_t i = 0; i < options_of_run.size(); ++i) {
    const Option& option = options_of_run[i];
    if (option.flag.empty()) continue;
    const std::string flag(option.flag), help = help_of(option);
    std::string& text = arguments.texts[i];
    if (option.placeholder.empty()) {
      command.add_flag_callback(
          flag, [&text, &option] { text = option.flag_means; }, help);
    } else {
      command.add_option(flag, text, help)->type_name(std::string(option.placeholder));
    }
  }
}

// Of the environment, and of the options, which replace it.
RunSettings read_settings(const RunArguments& arguments) try {
  check_variables(environ);
  RunSettings settings;
  read_variables(settings, [](const char* name) { return secure_getenv(name); });
  for (std::size_t i = 0; i < options_of_run.size(); ++i) {
    const Option& option = options_of_run[i];
    if (!arguments.texts[i].empty()) set_option(settings, option, std::string(option.flag), arguments.texts[i]);
  }
  return settings;
} catch (const BadOption& error) {
  throw UsageError(error.what());
}

bool is_cpu(const std::string& device) {
  return device == "cpu" || device.starts_with("cpu:");
}

// Throws UsageError for options that contradict each other: before the program starts, and by their names here.
void check_together(const SessionOptions& options) {
  std::vector<std::string> devices;
  if (!options.device.empty()) devices.push_back(options.device);
  for (const DeviceBudget& one : options.budgets) devices.push_back(one.device);
  if (!options.budgets.empty() && (options.budget != Budget() || !options.device.empty())) {
    throw UsageError("--budgets has the budget of each device: give it instead of --budget and --device");
  }
  if (options.disk.bytes != DiskOffload().bytes && options.disk.folder.empty()) {
    throw UsageError("--disk-bytes is about a disk, and there is none: name its folder with --disk");
  }
  if (!options.disk.folder.empty() && !devices.empty() && std::none_of(devices.begin(), devices.end(), is_cpu)) {
    throw UsageError(fmt::format(
        "--disk is for values of the CPU, and the budget is one of {}. Below an accelerator there is --host",
        devices.front()));
  }
  if (options.host.bytes > 0 && std::all_of(devices.begin(), devices.end(), is_cpu)) {
    throw UsageError("--host is memory below that of an accelerator: name the accelerator with --device or --budgets");
  }
}

void set_environment(const RunArguments& arguments, const std::filesystem::path& library) {
  setenv("LD_PRELOAD", with_preloaded(library).c_str(), 1);
  for (std::size_t i = 0; i < options_of_run.size(); ++i) {
    const Option& option = options_of_run[i];
    const std::string& text = arguments.texts[i];
    if (text.empty()) continue;
    // The program may go to another folder before it reads or writes there.
    const std::string value = option.is_path ? std::filesystem::absolute(text).string() : text;
    setenv(option.variable().c_str(), value.c_str(), 1);
  }
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
  const RunSettings settings = read_settings(arguments);
  check_together(settings.session);
  if (!settings.report.empty()) require_writable(settings.report, {});
  if (!settings.trace.empty()) require_writable(settings.trace, {settings.report});
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
    if (!settings.if_possible) throw UsageError(*why_not + ". With --if-possible the program runs untouched");
    say(*why_not + ". The program runs untouched");
    return start(*program, arguments.program);
  }
  set_environment(arguments, preloaded);
  return start(*program, arguments.program);
}

}  // namespace

void add_run(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "run", run_summary, described(), run_footer);
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
