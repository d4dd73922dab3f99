// Reprise against what people use: plain, re-running, PyTorch's own ways, in one run; writes docs/benchmarks.md.
//
// Measures into a JSON file, and becomes scripts/benchmarks_page.py, which makes the page and its picture from it. Exit
// codes: 0 done; 1 Reprise broke a promise (bits differ, or a peak passed its budget); 2 a mistake in the call or in
// the set-up.
#include "bench_compare.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <stdlib.h>
#include <torch/version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "compare_python.h"
#include "reprise/trace/error.h"
#include "training_run.h"

namespace reprise::benchmarks {
namespace {

constexpr int all_repetitions = 7, quick_repetitions = 2;

const Json& table() {
  static const Json all = Json::parse(std::ifstream(REPRISE_SOURCE_DIR "/benchmarks/compare_rivals.json"));
  return all;
}

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  for (const auto& [name, title] : table().at("models").items()) names.push_back(name);
  return names;
}

// `quick`: one rival of each kind.
ComparedModel model_of(const std::string& name, bool quick) {
  ComparedModel model{name, table().at("models").at(name), {}};
  for (const Json& row : table().at("rivals")) {
    const auto models = row.at("models").get<std::vector<std::string>>();
    if (std::find(models.begin(), models.end(), name) == models.end()) continue;
    if (quick && !row.value("quick", false)) continue;
    model.rivals.push_back({row.at("engine") == "Python", row.at("way"), row.at("label"), row.at("mark")});
  }
  return model;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[sizeof "2026-01-31"];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::string processor() {
  std::string model = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    model = line.substr(colon + 2);
    break;
  }
  return model + ", " + at::get_cpu_capability();
}

// The options that say what is measured, to be typed again.
std::string options_of(const CompareSettings& s) {
  std::string text;
  if (s.models != all_models()) text += " --models " + CLI::detail::join(s.models, ",");
  if (s.quick) text += " --quick";
  if (s.repetitions != (s.quick ? quick_repetitions : all_repetitions)) {
    text += " --repetitions " + std::to_string(s.repetitions);
  }
  return text;
}

// The settings from the command line. None: the program ends with `status` (help, or a mistake).
std::optional<CompareSettings> parse(int argc, char** argv, int& status) {
  CompareSettings s;
  s.models = all_models();
  s.output = REPRISE_SOURCE_DIR "/docs/benchmarks.md";
  CLI::App app{
      "Measures plain LibTorch, re-running checkpoints in C++, PyTorch's own ways to save memory and Reprise at the\n"
      "peak of each of them, in one interleaved run, and writes a page with tables and a picture.",
      "./bench compare"};
  app.add_option("--models", s.models, "which, with commas between them")
      ->delimiter(',')
      ->check(CLI::IsMember(all_models()));
  auto* const repetitions =
      app.add_option("--repetitions", s.repetitions, "of everything; 7, or with --quick 2")->check(CLI::PositiveNumber);
  app.add_option("--python", s.python,
                 "a Python that can import torch; otherwise python3 is tried, and then that of .venv");
  app.add_option("--output", s.output,
                 "the page, docs/benchmarks.md if not given; its picture gets the same name with .svg, and the "
                 "measurements with .json");
  app.add_flag("--quick", s.quick, "one rival of each kind, few budgets, a second for each plan");
  app.add_option("--from", s.from, "write the page from the measurements in this file, and measure nothing")
      ->check(CLI::ExistingFile);
  try {
    app.parse(argc, argv);
    if (s.output.extension() != ".md") throw CLI::ValidationError("--output", "wants a name that ends with .md");
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (s.quick) {
    s.planning_time = std::chrono::seconds(1);
    if (repetitions->count() == 0) s.repetitions = quick_repetitions;
  }
  return s;
}

Json about_this_run(const CompareSettings& settings) {
  double load = 0;
  if (getloadavg(&load, 1) != 1) load = 0;
  return {{"date", today()},
          {"options", options_of(settings)},
          {"processor", processor()},
          {"cores", std::thread::hardware_concurrency()},
          {"load", load},
          {"libtorch", TORCH_VERSION},
          {"python_torch", ""},  // "torch 2.13.0, Python 3.11.7"; empty: none
          {"no_python", ""},     // why there is none
          {"repetitions", settings.repetitions},
          {"quick", settings.quick},
          {"asked", settings.models},
          {"models", Json::array()}};  // fewer than asked: the run was broken off
}

void measure_all(const CompareSettings& settings, const std::filesystem::path& output) {
  begin_process(/*threads=*/1, /*denormals=*/false);
  Json results = about_this_run(settings);
  std::unique_ptr<PythonPeers> python;
  try {
    python = std::make_unique<PythonPeers>(settings.python);
    results["python_torch"] = python->versions();
  } catch (const PeerError& error) {
    results["no_python"] = error.what();
    std::cerr << "[bench compare] PyTorch's own ways are not measured: " << error.what() << '\n';
  }
  for (const std::string& model : settings.models) {
    results["models"].push_back(compare_sides(model_of(model, settings.quick), settings, python.get()));
    std::ofstream file(output);  // after every model: what is there, if the run is broken off
    file << results.dump(1) << '\n';
    if (!file.flush()) throw Error("[bench compare] cannot write " + output.string());
  }
}

[[noreturn]] void become_page_maker(const std::filesystem::path& results, const std::filesystem::path& page) {
  const std::string own = REPRISE_SOURCE_DIR "/.venv/bin/python";  // where ./bench puts matplotlib
  const std::string python = std::filesystem::exists(own) ? own : "python3";
  execlp(python.c_str(), python.c_str(), REPRISE_SOURCE_DIR "/scripts/benchmarks_page.py", results.c_str(), "--output",
         page.c_str(), nullptr);
  throw Error("[bench compare] cannot run " + python + " to make the page from " + results.string());
}

}  // namespace

int compare(int argc, char** argv) {
  int status = 0;
  const std::optional<CompareSettings> settings = parse(argc, argv, status);
  if (!settings) return status;
  std::filesystem::path results = settings->from;
  if (results.empty()) {
    results = settings->output;
    measure_all(*settings, results.replace_extension(".json"));
  }
  become_page_maker(results, settings->output);
}

}  // namespace reprise::benchmarks
