// The `reprise` command: finds out which command is meant, runs it, and turns whatever goes wrong into one line on
// stderr and an exit code.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "command.h"
#include "help.h"
#include "reprise/trace/error.h"

namespace reprise::tools {
namespace {

constexpr const char* description =
    "plan what to forget and what to replay, so that training fits a byte budget\n"
    "A trace is a record of what a training step does: operators, the values they make, how long they take, when backward "
    "needs what. Reprise reads it from a file and finds out which values to forget, when, and how to get them back, so that "
    "the live bytes never pass a budget and the step takes as little longer as possible.";

constexpr const char* footer = R"(Start with:
  reprise example
  reprise COMMAND --help

Exit codes:
  0  done
  1  an invalid plan, or a defect of Reprise
  2  wrong usage, a file that cannot be read or written
  3  no plan was found for this budget
)";

int fail(const std::string& command, const std::string& message, int code) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n') c = ' ';  // one line, whatever happened
  }
  fmt::print(stderr, "{}: {}\n", command, line);
  return code;
}

// "reprise plan" if that much of the command line was understood.
std::string spoken_to(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? "reprise" : "reprise " + commands.front()->get_name();
}

int wrong_usage(const CLI::App& app, const CLI::ParseError& error, const char* first_argument) {
  const std::string command = spoken_to(app);
  std::string message = error.what();
  if (app.get_subcommands().empty()) {
    message = first_argument ? fmt::format("there is no command '{}'", first_argument) : "a command is missing";
  }
  return fail(command, fmt::format("{}; see {} --help", message, command), exit_usage);
}

int run(int argc, char** argv) {
  CLI::App app(description, "reprise");
  app.formatter(std::make_shared<HelpFormatter>());  // before the commands, which take it over
  app.set_help_flag("-h,--help", "Print this and exit.");
  app.set_version_flag("--version", "reprise " REPRISE_VERSION, "Print the version and exit.");
  app.footer(footer);
  app.require_subcommand(1);
  Run command;
  for (const auto add : {add_plan, add_simulate, add_curve, add_inspect, add_planners, add_example}) add(app, command);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print_out(app.help());
    return exit_done;
  } catch (const CLI::CallForVersion& version) {
    print_out(std::string(version.what()) + "\n");
    return exit_done;
  } catch (const CLI::ParseError& error) {
    return wrong_usage(app, error, argc > 1 ? argv[1] : nullptr);
  }

  try {
    return command();
  } catch (const UsageError& error) {
    return fail(spoken_to(app), error.what(), exit_usage);
  } catch (const BadInput& error) {
    return fail(spoken_to(app), error.what(), exit_usage);
  } catch (const BadOption& error) {
    return fail(spoken_to(app), error.what(), exit_usage);
  } catch (const std::bad_alloc&) {
    return fail(spoken_to(app), "there is not enough memory", exit_refused);
  } catch (const std::exception& error) {
    return fail(spoken_to(app), error.what(), exit_refused);
  }
}

}  // namespace
}  // namespace reprise::tools

int main(int argc, char** argv) { return reprise::tools::run(argc, argv); }
