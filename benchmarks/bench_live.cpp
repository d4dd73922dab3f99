// Trains a model within a byte budget: CPU time, peak, and every bit against plain steps in the same run.
//
// Exit codes: 0 done; 1 a promise was broken (bits differ, or the peak passed the budget); 2 a mistake in the call or
// in the set-up; 3 the budget cannot be kept.
#include "bench_live.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "reprise/torch/errors.h"
#include "training_device.h"
#include "training_models.h"
#include "training_run.h"

namespace reprise::benchmarks {
namespace {

const std::map<std::string, Verify> verify_names{
    {"never", Verify::never}, {"first_time", Verify::first_time}, {"always", Verify::always}};

// SIDE N
void take_only(const std::vector<std::string>& words, LiveSettings& s) {
  s.only = words[0];
  if (!CLI::detail::lexical_cast(words[1], s.only_steps) || s.only_steps < 1 ||
      (s.only != "plain" && s.only != "record" && s.only != "reprise")) {
    throw CLI::ValidationError("--only", "wants plain, record or reprise, and a number of steps");
  }
}

// The settings from the command line. None: the program ends with `status` (help, or a mistake).
std::optional<LiveSettings> parse(int argc, char** argv, int& status) {
  LiveSettings s;
  std::int64_t planning_time = s.session.planning_time.count();
  bool no_pack = false;
  std::string disk;
  std::vector<std::string> only;

  CLI::App app{
      "Trains a model within a byte budget, every Reprise step between two plain ones, and compares bits, bytes\n"
      "and CPU time. Bytes are counted above the level, what is live at the start of a step.",
      "./bench live"};
  app.add_option("--model", s.model, "which model")->check(CLI::IsMember(model_names()))->capture_default_str();
  app.add_option("--budget", s.budget, "a share of the plain peak (0.5x) or bytes (180MB)")->capture_default_str();
  app.add_option("--optimizer", s.optimizer, "what ends a step")
      ->check(CLI::IsMember({"none", "sgd", "adam"}))
      ->capture_default_str();
  app.add_option("--region", s.region, "also measure re-running checkpointing of every K blocks")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--verify", s.session.verify, "when recomputed values are compared: never, first_time or always")
      ->transform(CLI::CheckedTransformer(verify_names));
  app.add_flag("--no-pack", no_pack, "no packing of masks and indices");
  app.add_option("--disk", disk, "a folder on a disk below the memory; default: no disk");
  app.add_option("--planning-time", planning_time, "milliseconds for each plan; 0: none, the online policy decides")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--threads", s.threads, "intra-op threads")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--denormals", s.denormals, "do not flush them to zero: slow on some processors, in lstm above all");
  app.add_option("--repetitions", s.repetitions, "at most; fewer when the quartiles are close before")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", s.steps, "timed as one; 0: as many as take a tenth of a second")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--run", s.run,
                 "runs N steps as in a training, without waiting for plans; default for a model whose steps\n"
                 "differ: 200")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--planning-share", s.session.planning_share,
                 "see SessionOptions; default: 0.05 with --run, else inf");
  app.add_option("--device", s.device,
                 "sim: on the simulated accelerator of the tests, in its bytes and in the time of its kernels")
      ->check(CLI::IsMember({"cpu", "sim"}))
      ->capture_default_str();
  app.add_flag("--smallest", s.smallest, "find the smallest budget that three steps in a row keep, to 0.1 %");
  app.add_flag("--json", s.json, "one JSON object alone on stdout");
  app.add_option("--only", only, "SIDE N: N steps of plain, record (no budget) or reprise and nothing else")
      ->expected(2);
  app.add_flag("--resident", s.resident)->group("");  // for the child process
  try {
    app.parse(argc, argv);
    if (!only.empty()) take_only(only, s);
    if (s.device != "cpu" && s.run > 0) throw CLI::ValidationError("--run", "is about the CPU: not with --device");
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  const auto unchanging = unchanging_model_names();
  constexpr int usual_run = 200;
  if (s.run == 0 && std::find(unchanging.begin(), unchanging.end(), s.model) == unchanging.end()) s.run = usual_run;
  if (s.run == 0 && app.count("--planning-share") == 0) {
    s.session.planning_share = std::numeric_limits<double>::infinity();  // what is measured comes after planning
  }
  s.session.planning_time = std::chrono::milliseconds(planning_time);
  s.session.pack = !no_pack;
  s.session.disk.folder = disk;
  s.session.name = "bench live " + s.model;
  return s;
}

void print_failure(const LiveSettings& settings, const LiveReport& known, const BudgetError& error) {
  std::cerr << "[bench live] the budget of " << known.budget << " bytes above the level of " << known.level
            << " cannot be kept: " << error.what() << '\n';
  if (!settings.json) return;
  nlohmann::ordered_json row{{"model", settings.model},
                             {"budget_bytes", known.budget},
                             {"plain_peak_bytes", known.plain_peak},
                             {"error", error.what()}};
  if (const auto smallest = error.facts().smallest_feasible) row["smallest_feasible_bytes"] = *smallest - known.level;
  std::cout << row.dump() << std::endl;
}

template <typename Report>
void write(const LiveSettings& settings, const Report& report) {
  settings.json ? write_json(std::cout, report) : write_text(std::cout, report);
}

}  // namespace

std::vector<std::string> arguments_of_child(const LiveSettings& s, Bytes budget) {
  const int steps = s.run > 0 ? s.run : 6;
  std::string verify;
  for (const auto& [name, value] : verify_names) {
    if (value == s.session.verify) verify = name;
  }
  // clang-format off
  std::vector<std::string> arguments{
      "live", "--model", s.model, "--optimizer", s.optimizer, "--budget", std::to_string(budget),
      "--threads", std::to_string(s.threads), "--verify", verify,
      "--planning-time", std::to_string(s.session.planning_time.count()),
      "--planning-share", std::to_string(s.session.planning_share), "--run", std::to_string(s.run),
      "--only", "reprise", std::to_string(steps), "--resident"};
  // clang-format on
  if (!s.session.pack) arguments.emplace_back("--no-pack");
  if (!s.session.disk.folder.empty()) {
    arguments.emplace_back("--disk");
    arguments.emplace_back(s.session.disk.folder.string());
  }
  if (s.denormals) arguments.emplace_back("--denormals");
  return arguments;
}

int live(int argc, char** argv) {
  int status = 0;
  const std::optional<LiveSettings> settings = parse(argc, argv, status);
  if (!settings) return status;
  begin_process(settings->threads, settings->denormals);
  train_on(settings->device);
  if (settings->smallest) {
    const SmallestReport report = find_smallest(*settings);
    write(*settings, report);
    return report.bit_equal ? 0 : 1;
  }
  LiveReport report;
  RunReport run;
  try {
    if (!settings->only.empty()) {
      run_only(*settings, report);
      return 0;
    }
    if (settings->run > 0) {
      measure_run(*settings, run);
      write(*settings, run);
      return run.broken() ? 1 : 0;
    }
    measure(*settings, report);
  } catch (const BudgetError& error) {
    if (settings->run > 0) std::tie(report.level, report.plain_peak, report.budget) = run.ground();
    print_failure(*settings, report, error);
    return 3;
  }
  write(*settings, report);
  return report.broken() ? 1 : 0;
}

}  // namespace reprise::benchmarks
