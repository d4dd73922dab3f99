// What ./bench compare measured: plain data, with a file to keep it in.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compare_rivals.h"
#include "reprise/trace/trace.h"

namespace reprise::benchmarks {

// The steps of one side.
struct Measured {
  std::vector<double> ratios;            // CPU time, each against the plain steps around it
  Bytes peak = 0;                        // above the level, the largest of all steps
  std::optional<double> gradient_error;  // the largest relative one; none: every bit is that of plain steps
  bool buffers_equal = true;             // BatchNorm's statistics
  std::string failure;                   // why there are no ratios; empty: there are
};

struct RivalResult {
  Rival rival;
  Measured measured;
};

struct ReprisePoint {
  Bytes budget = 0;  // above the level
  Measured measured;
};

// Plain steps of one engine.
struct PlainResult {
  Bytes peak = 0;  // above the level
  std::vector<double> seconds;
  std::vector<double> again;  // ratios of plain steps that were measured as if they were a rival's: what noise does
};

struct ModelResult {
  std::string model;
  PlainResult cpp;
  std::optional<PlainResult> python;  // none: there was no Python with torch
  std::vector<RivalResult> rivals;
  std::vector<ReprisePoint> reprise;
};

struct Results {
  std::string date;       // 2026-01-31
  std::string options;    // of ./bench compare, as far as they say what is measured
  std::string processor;  // its name, and which vector instructions LibTorch uses
  int cores = 0;
  double load = 0;  // the system's load average when the run began
  std::string libtorch;
  std::string python_torch;  // "torch 2.13.0, Python 3.11.7"; empty: none
  std::string no_python;     // why there is none
  int repetitions = 0;
  bool quick = false;
  std::vector<std::string> asked;   // names of models
  std::vector<ModelResult> models;  // fewer than asked: the run was broken off
};

// JSON; throws Error if the file cannot be written, or read, or is something else.
void write_results(const std::filesystem::path&, const Results&);
[[nodiscard]] Results read_results(const std::filesystem::path&);

}  // namespace reprise::benchmarks
