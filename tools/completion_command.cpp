// reprise completion: what a shell needs to complete commands, options and file names.
#include <fmt/format.h>

#include <memory>

#include "command.h"

namespace reprise::tools {
namespace {

constexpr const char* completion_summary = "print a shell script that completes reprise's commands and options";

constexpr const char* completion_description =
    "The script is written from the commands themselves, so it is never out of date. Where reprise is installed as "
    "a package, bash has it already.";

constexpr const char* completion_footer = R"(Examples:
  source <(reprise completion bash)
  reprise completion zsh > ~/.zfunc/_reprise
  reprise completion fish > ~/.config/fish/completions/reprise.fish

Exit codes:
  0  done
  2  wrong usage
)";

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string first_sentence(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), text.find(". ")));
}

std::string long_options(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
  }
  return words;
}

// Options first; whatever else is wanted is a file, or behind -- the command line of another program.
std::string bash(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : commands_of(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    cases += fmt::format("    {}) options='{}' ;;\n", command->get_name(), long_options(*command));
  }
  return fmt::format(R"(# bash completion for reprise
_reprise() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} options=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{0} {1}' -- "$word")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{2}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F _reprise reprise
)",
                     names, long_options(app), cases);
}

std::string zsh(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : commands_of(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    cases += fmt::format("    {}) compadd -- {} ;;\n", command->get_name(), long_options(*command));
  }
  return fmt::format(R"(#compdef reprise
_reprise() {{
  if ((CURRENT == 2)); then
    compadd -- {0} {1}
    return
  fi
  if [[ $PREFIX != -* ]]; then
    _files
    return
  fi
  case $words[2] in
{2}  esac
}}
if [[ $funcstack[1] == _reprise ]]; then
  _reprise "$@"
else
  compdef _reprise reprise
fi
)",
                     names, long_options(app), cases);
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return result + "'";
}

std::string fish(const CLI::App& app) {
  std::string text = "# fish completion for reprise\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    text += fmt::format("complete -c reprise -n __fish_use_subcommand -f -a {} -d {}\n", name,
                        quoted(first_sentence(command->get_description())));
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& word : option->get_lnames()) {
        text += fmt::format("complete -c reprise -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n", name, word,
                            option->get_items_expected_max() > 0 ? " -r" : "",
                            quoted(first_sentence(option->get_description())));
      }
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Run& run) {
  CLI::App* const command =
      add_command(app, "completion", completion_summary, completion_description, completion_footer);
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "The shell: bash, zsh or fish.")->type_name("")->required();
  command->callback([shell, &app, &run] {
    run = [shell, &app] {
      if (*shell == "bash") {
        print_out(bash(app));
      } else if (*shell == "zsh") {
        print_out(zsh(app));
      } else if (*shell == "fish") {
        print_out(fish(app));
      } else {
        throw UsageError(fmt::format("SHELL is '{}', but must be bash, zsh or fish", *shell));
      }
      return int{exit_done};
    };
  });
}

}  // namespace reprise::tools
