#include "help.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace reprise::tools {
namespace {

constexpr std::size_t help_columns = 96;

std::string wrapped(const std::string& text, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::istringstream words(text);
  std::string result, line, word;
  while (words >> word) {
    if (!line.empty() && margin.size() + line.size() + 1 + word.size() > help_columns) {
      result += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? result : result + margin + line + "\n";
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string paragraphs(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the summary
  while (std::getline(lines, line)) {
    if (!line.empty()) result += "\n" + wrapped(line, 0);
  }
  return result;
}

bool is_positional(const CLI::Option& option) {
  return option.get_lnames().empty() && option.get_snames().empty();
}

std::string spelling(const CLI::Option& option) {
  if (is_positional(option)) return option.get_name(true);
  std::string text;
  for (const auto& name : option.get_snames()) text += (text.empty() ? "-" : ", -") + name;
  for (const auto& name : option.get_lnames()) text += (text.empty() ? "--" : ", --") + name;
  const bool takes_value = option.get_items_expected_max() > 0;
  return takes_value ? text + " " + option.get_type_name() : text;
}

std::string usage(const CLI::App& app) {
  std::string text = "Usage: reprise";
  if (app.get_parent()) text += " " + app.get_name();
  bool optional = false;
  std::string behind;  // the command line of another program
  for (const CLI::Option* option : app.get_options()) {
    if (is_positional(*option) && option->get_items_expected_max() > 1) {
      behind = " -- " + spelling(*option) + " [ARGUMENT ...]";
    } else if (option->get_required()) {
      text += " " + spelling(*option);
    } else if (is_positional(*option)) {
      text += " [" + spelling(*option) + "]";
    } else {
      optional = true;
    }
  }
  if (!app.get_parent()) text += " COMMAND";
  return text + (optional && app.get_parent() ? " [OPTION ...]" : " ...") + behind + "\n";
}

std::string options(const CLI::App& app) {
  std::vector<const CLI::Option*> all = app.get_options();
  // What is particular comes first.
  std::stable_partition(all.begin(), all.end(),
                        [&](const CLI::Option* option) { return option != app.get_help_ptr(); });
  std::string text = "\nOptions:\n";
  for (const CLI::Option* option : all) {
    text += fmt::format("  {}\n{}", spelling(*option), wrapped(option->get_description(), 8));
  }
  return text;
}

std::string commands(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    text += fmt::format("  {:<12}{}\n", command->get_name(), first_line(command->get_description()));
  }
  return text.empty() ? "" : "\nCommands:\n" + text;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  const std::string name = app->get_parent() ? "reprise " + app->get_name() : "reprise";
  std::string text = fmt::format("{}: {}\n\n{}", name, first_line(app->get_description()), usage(*app));
  text += paragraphs(app->get_description()) + commands(*app) + options(*app);
  const std::string footer = app->get_footer();
  return footer.empty() ? text : text + "\n" + footer;
}

}  // namespace reprise::tools
