// The options of `reprise train`. Read by the command, for --help and its complaints, and again by the program with
// LibTorch that does the work.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "command.h"

namespace reprise::tools {

struct TrainOptions {
  // ---- the model ----
  int layers = 4;
  int width = 128;
  int heads = 4;
  int context = 128;
  double dropout = 0.1;

  // ---- the training ----
  std::optional<std::filesystem::path> data;  // none: the documentation of Reprise
  int steps = 40;
  int batch = 32;
  double learning_rate = 1e-3;
  std::uint64_t seed = 1;
  int threads = 0;  // zero: as many as LibTorch takes

  // ---- the budget ----
  std::string budget = "0.333x";  // an amount, or a multiple of what a plain step needs
  double planning_share = 0.05;
  double planning_time = 5;
  std::string plans;     // a folder; empty: plans are not kept
  bool compare = false;  // plain first, then in the budget, then with re-running checkpoints
  bool plain = false;    // no budget, nothing is recorded

  // ---- files ----
  std::optional<std::filesystem::path> save, metrics, report, trace;
  int save_every = 10;
  bool resume = false;
};

// Adds the command with everything that --help says; `use` is called when the command line names it.
void add_train_command(CLI::App& app, const std::shared_ptr<TrainOptions>& options, const std::function<void()>& use);

// Throws UsageError for options that contradict each other.
void check_options(const TrainOptions&);

}  // namespace reprise::tools
