// Reprise against what people use: plain, re-running, PyTorch's own ways, in one run; writes docs/benchmarks.md.
//
// Exit codes: 0 done; 1 Reprise broke a promise (bits differ, or a peak passed its budget); 2 a mistake in the call or
// in the set-up.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <stdlib.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>

#include "compare_document.h"
#include "compare_findings.h"
#include "compare_measure.h"
#include "compare_python.h"
#include "reprise/trace/error.h"
#include "torch/meter.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

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

Results about_this_run(const CompareSettings& settings) {
  Results results;
  results.date = today();
  results.options = settings.options();
  results.processor = processor();
  results.cores = static_cast<int>(std::thread::hardware_concurrency());
  if (getloadavg(&results.load, 1) != 1) results.load = 0;
  results.libtorch = TORCH_VERSION;
  results.repetitions = settings.repetitions;
  results.asked = settings.models;
  results.quick = settings.quick;
  return results;
}

Results measure_all(const CompareSettings& settings) {
  meter::keep_heap();  // before anything: all sides have the same heap
  at::set_num_threads(1);
  at::globalContext().setFlushDenormal(true);
  meter::keep_all_pages();  // or a plain step pays for the pages that the limit of the step before gave back
  Results results = about_this_run(settings);
  std::unique_ptr<PythonPeers> python;
  try {
    python = std::make_unique<PythonPeers>(settings.python);
    results.python_torch = python->versions();
  } catch (const PeerError& error) {
    results.no_python = error.what();
    std::cerr << "[bench compare] PyTorch's own ways are not measured: " << error.what() << '\n';
  }
  for (const std::string& model : settings.models) {
    results.models.push_back(measure(model, settings, python.get(), "no Python with torch"));
    if (!settings.keep.empty()) write_results(settings.keep, results);  // what is there, if the run is broken off
  }
  return results;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw Error("[bench compare] cannot write " + path.string());
  std::cerr << "wrote " << path.string() << '\n';
}

bool broken(const Results& results) {
  for (const ModelResult& model : results.models) {
    for (const ReprisePoint& point : model.reprise) {
      if (!point.measured.ratios.empty() && !kept_its_promises(point)) return true;
    }
  }
  return false;
}

int run(const CompareSettings& settings) {
  const Results results = settings.from.empty() ? measure_all(settings) : read_results(settings.from);
  std::filesystem::path picture = settings.output;
  picture.replace_extension(".svg");
  write_file(settings.output, to_markdown(results, picture.filename().string()));
  write_file(picture, to_svg(results));
  std::cout << verdict(results);
  return broken(results) ? 1 : 0;
}

}  // namespace
}  // namespace reprise::benchmarks

int main(int argc, char** argv) {
  using namespace reprise::benchmarks;
  const CompareParsed parsed = parse_compare_settings(argc, argv);
  if (!parsed.run) return parsed.status;
  try {
    return run(parsed.settings);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
