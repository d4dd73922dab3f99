#include "compare_settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "compare_rivals.h"

namespace reprise::benchmarks {
namespace {

constexpr int all_repetitions = 7, quick_repetitions = 2;

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  for (const ComparedModel& model : compared_models()) names.push_back(model.name);
  return names;
}

}  // namespace

std::string CompareSettings::options() const {
  std::string text;
  if (models != all_models()) text += " --models " + CLI::detail::join(models, ",");
  if (quick) text += " --quick";
  if (repetitions != (quick ? quick_repetitions : all_repetitions)) {
    text += " --repetitions " + std::to_string(repetitions);
  }
  return text;
}

CompareParsed parse_compare_settings(int argc, char** argv) {
  CompareParsed parsed;
  CompareSettings& s = parsed.settings;
  s.models = all_models();
  s.output = std::filesystem::path(REPRISE_SOURCE_DIR) / s.output;

  CLI::App app{
      "Measures plain LibTorch, re-running checkpoints in C++, PyTorch's own ways to save memory and Reprise at the "
      "peak of each of them,\nin one interleaved run, and writes a page with tables and a picture."};
  app.add_option("--models", s.models, "which, with commas between them")
      ->delimiter(',')
      ->check(CLI::IsMember(all_models()));
  auto* const repetitions =
      app.add_option("--repetitions", s.repetitions, "of everything; 7, or with --quick 2")->check(CLI::PositiveNumber);
  app.add_option("--python", s.python,
                 "a Python that can import torch; otherwise python3 is tried, and then that of .venv");
  app.add_option("--output", s.output,
                 "the page, docs/benchmarks.md if not given; its picture gets the same name with .svg");
  app.add_flag("--quick", s.quick, "one rival of each kind, few budgets, a second for each plan");
  auto* const keep = app.add_option("--keep", s.keep, "also write every measurement into this file, after each model");
  app.add_option("--from", s.from, "write the page from such a file, and measure nothing")
      ->check(CLI::ExistingFile)
      ->excludes(keep);
  try {
    app.parse(argc, argv);
    if (s.output.extension() != ".md") throw CLI::ValidationError("--output", "wants a name that ends with .md");
  } catch (const CLI::ParseError& error) {
    parsed.status = app.exit(error) == 0 ? 0 : 2;
    return parsed;
  }
  if (s.quick) {
    s.planning_time = std::chrono::seconds(1);
    if (repetitions->count() == 0) s.repetitions = quick_repetitions;
  }
  parsed.run = true;
  return parsed;
}

}  // namespace reprise::benchmarks
