// What --help prints: the same order and wording everywhere, wrapped to the width of a terminal.
#pragma once

#include <CLI/CLI.hpp>

namespace reprise::tools {

class HelpFormatter : public CLI::FormatterBase {
 public:
  // Of the description of an app, the first line is its summary, the rest are paragraphs. The footer is printed as it
  // is.
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace reprise::tools
