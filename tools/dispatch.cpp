#include "dispatch.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "help.h"
#include "reprise/trace/error.h"
#include "trace/printable.h"

namespace reprise::tools {
namespace {

constexpr const char* description =
    "train LibTorch models inside a hard byte budget\n"
    "Training keeps the activations of the forward pass for the backward pass, and they usually fill most of the "
    "memory. Reprise evicts some, packs others and recomputes what backward asks for, bit for "
    "bit the same, so that live bytes never pass the budget.\n"
    "A trace is a record of one training step: its operators, the values they make, how long they take, and when "
    "backward needs which value. `run` and `train` write traces; `plan`, `simulate`, `curve`, `fit`, `inspect` and "
    "`report` work on them, without LibTorch.";

constexpr const char* footer = R"(Start with:
  reprise train --compare                             a GPT, plainly and in a third of the memory
  reprise run --budget 2GiB -- ./my_trainer           your own program, unchanged
  reprise COMMAND --help

Exit codes:
  0  done
  1  an invalid plan, or a defect of Reprise
  2  wrong usage, a file that cannot be read or written
  3  the budget cannot be kept, or no plan was found for it
`reprise run` ends with the exit code of the program it runs.
)";

// One line, whatever happened, and whatever is named in it.
int fail(const std::string& command, std::string message, int code) {
  message = internal::printable_line(message);
  // The library says which of its rooms complains; here the command says more.
  if (message.starts_with('[') && message.find("] ") != std::string::npos) message.erase(0, message.find("] ") + 2);
  fmt::print(stderr, "{}: {}\n", command, message);
  return code;
}

// "reprise plan" if that much of the command line was understood.
std::string spoken_to(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? "reprise" : "reprise " + commands.front()->get_name();
}

// What the parser complains about, in the words of everything else.
std::string in_words(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string subject = text.substr(0, text.find_first_of(": "));
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::ArgumentMismatch:
      return subject + (text.find("At Most") == std::string::npos ? " needs a value" : " can be given only once");
    case CLI::ExitCodes::ExtrasError: return "not understood: " + text.substr(text.rfind(": ") + 2);
    case CLI::ExitCodes::RequiredError: return subject + " is missing";
    default: return text;
  }
}

int wrong_usage(const CLI::App& app, const CLI::ParseError& error, const char* first_argument) {
  const std::string command = spoken_to(app);
  std::string message = in_words(error);
  if (app.get_subcommands().empty()) {
    message = !first_argument            ? "COMMAND is missing"
              : first_argument[0] == '-' ? fmt::format("not understood: {}", first_argument)
                                         : fmt::format("there is no command '{}'", first_argument);
  }
  return fail(command, fmt::format("{}; see {} --help", message, command), exit_usage);
}

}  // namespace

int dispatch(int argc, char** argv, const std::vector<AddCommand>& commands) {
  CLI::App app(description, "reprise");
  app.formatter(std::make_shared<HelpFormatter>());  // before the commands, which take it over
  app.set_help_flag("-h,--help", "Print this and exit.");
  app.set_version_flag("--version", "reprise " REPRISE_VERSION, "Print the version and exit.");
  app.footer(footer);
  app.require_subcommand(1);
  Run command;
  for (const AddCommand add : commands) add(app, command);

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

}  // namespace reprise::tools
