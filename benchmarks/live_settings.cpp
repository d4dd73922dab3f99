#include "live_settings.h"

#include <CLI/CLI.hpp>
#include <map>

#include "live_models.h"

namespace reprise::benchmarks {
namespace {

const std::map<std::string, Verify> verify_names{
    {"never", Verify::never}, {"first_time", Verify::first_time}, {"always", Verify::always}};

}  // namespace

Parsed parse_settings(int argc, char** argv) {
  Parsed parsed;
  Settings& s = parsed.settings;
  std::int64_t planning_time = s.session.planning_time.count();
  bool no_pack = false;
  std::vector<std::string> only;

  CLI::App app{
      "Trains a model within a byte budget, every Reprise step between two plain ones, and compares bits, bytes and "
      "CPU "
      "time.\nBytes are counted above the level, what is live at the start of a step."};
  app.add_option("--model", s.model, "which model")->check(CLI::IsMember(model_names()))->capture_default_str();
  app.add_option("--budget", s.budget, "a share of the plain peak (0.5x) or bytes (180MB)")->capture_default_str();
  app.add_option("--optimizer", s.optimizer, "what ends a step")
      ->check(CLI::IsMember({"none", "sgd", "adam"}))
      ->capture_default_str();
  app.add_option("--region", s.region, "also measure re-running checkpointing of every K blocks")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--verify", s.session.verify, "when rebuilt values are compared: never, first_time or always")
      ->transform(CLI::CheckedTransformer(verify_names));
  app.add_flag("--no-pack", no_pack, "no packing of masks and indices");
  app.add_option("--planning-time", planning_time, "milliseconds for each plan; 0: none, the online policy rules")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--threads", s.threads, "intra-op threads")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--denormals", s.denormals, "do not flush them to zero: slow on some processors, in lstm above all");
  app.add_option("--repetitions", s.repetitions, "at most; fewer when the quartiles are close before")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", s.steps, "timed as one; 0: as many as take a tenth of a second")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--smallest", s.smallest, "find the smallest budget that three steps in a row keep, to 0.1 %");
  app.add_flag("--json", s.json, "one JSON object alone on stdout");
  app.add_option("--only", only, "SIDE N: N steps of plain, record (no budget) or reprise and nothing else")
      ->expected(2);
  app.add_flag("--resident", s.resident)->group("");  // for the child process
  try {
    app.parse(argc, argv);
    if (!only.empty()) {
      s.only = only[0];
      if (!CLI::detail::lexical_cast(only[1], s.only_steps) || s.only_steps < 1 ||
          (s.only != "plain" && s.only != "record" && s.only != "reprise")) {
        throw CLI::ValidationError("--only", "wants plain, record or reprise, and a number of steps");
      }
    }
  } catch (const CLI::ParseError& error) {
    parsed.status = app.exit(error) == 0 ? 0 : 2;
    return parsed;
  }
  s.session.planning_time = std::chrono::milliseconds(planning_time);
  s.session.pack = !no_pack;
  s.session.name = "bench live " + s.model;
  parsed.run = true;
  return parsed;
}

std::vector<std::string> arguments_of_child(const Settings& s, Bytes budget) {
  constexpr int steps = 6;
  std::string verify;
  for (const auto& [name, value] : verify_names) {
    if (value == s.session.verify) verify = name;
  }
  std::vector<std::string> arguments{"--model",
                                     s.model,
                                     "--budget",
                                     std::to_string(budget),
                                     "--verify",
                                     verify,
                                     "--threads",
                                     std::to_string(s.threads),
                                     "--only",
                                     "reprise",
                                     std::to_string(steps),
                                     "--optimizer",
                                     s.optimizer,
                                     "--planning-time",
                                     std::to_string(s.session.planning_time.count()),
                                     "--resident"};
  if (!s.session.pack) arguments.emplace_back("--no-pack");
  if (s.denormals) arguments.emplace_back("--denormals");
  return arguments;
}

}  // namespace reprise::benchmarks
