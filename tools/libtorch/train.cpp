#include "libtorch/train.h"

#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "interrupt.h"
#include "libtorch/trainer.h"
#include "reprise/torch/session_report.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/files.h"
#include "torch/memory/meter.h"
#include "train_text.h"

namespace reprise::tools {
using namespace internal;
namespace {

// ---- what is trained -----------------------------------------------------------------------------------------------

// Reprise's documentation: beside this program where it was built, and with the data of its installation.
std::filesystem::path own_documentation() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto built = folder / "documentation.txt";
  return std::filesystem::exists(built) ? built : folder / REPRISE_DATA_FROM_COMMAND / "documentation.txt";
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw UsageError("--data: " + path.string() + " cannot be read, or is empty");
  return text.str();
}

Text read_text(const TrainOptions& options) {
  const std::string text = contents(options.data ? *options.data : own_documentation());
  if (static_cast<std::int64_t>(text.size()) < options.context + 2) {
    throw UsageError("--data has " + std::to_string(text.size()) + " characters, but --context " +
                     std::to_string(options.context) + " needs at least " + std::to_string(options.context + 2));
  }
  return Text(text);
}

TrainerOptions trainer_options(const TrainOptions& options, const Text& text) {
  TrainerOptions result;
  result.model.vocabulary = text.vocabulary();
  result.model.layers = options.layers;
  result.model.width = options.width;
  result.model.heads = options.heads;
  result.model.context = options.context;
  result.model.dropout = options.dropout;
  result.batch = options.batch;
  result.learning_rate = options.learning_rate;
  result.seed = options.seed;
  return result;
}

Session new_session(const TrainOptions& options, Bytes budget) {
  SessionOptions session;
  session.budget = budget;
  session.planning_share = options.planning_share;
  session.planning_time = std::chrono::milliseconds(static_cast<std::int64_t>(options.planning_time * 1000));
  session.plans = options.plans;
  session.name = "train";
  return Session(std::move(session));
}

// ---- one run -------------------------------------------------------------------------------------------------------

struct Run {
  std::vector<float> losses;
  std::vector<double> seconds;
  Bytes peak = 0;
  std::uint64_t fingerprint = 0;
  bool interrupted = false;
};

class Metrics {
 public:
  Metrics(const std::optional<std::filesystem::path>& path, bool go_on) : path_(path) {
    if (path_) file_.open(*path_, go_on ? std::ios::app : std::ios::out);
  }
  void write(const ShownStep& step, std::optional<Bytes> budget, const Summary& summary) {
    if (!path_) return;
    file_ << metrics_line(step, budget, summary.followed_plan, summary.replay_seconds, summary.packed_last_step)
          << std::flush;
    if (!file_) throw UsageError("--metrics: " + path_->string() + " cannot be written");
  }

 private:
  std::optional<std::filesystem::path> path_;
  std::ofstream file_;
};

// From where the trainer is to the last step, plainly without a session.
Run run(const TrainOptions& options, const std::string& title, Trainer& trainer, Session* session) {
  const std::atomic<bool>* const interrupted = cancel_on_interrupt();
  const std::optional<Bytes> budget = session ? std::optional(session->budget()) : std::nullopt;
  Metrics metrics(options.compare && !session ? std::nullopt : options.metrics, options.resume);
  TrainingProgress progress(title, trainer.steps(), options.steps, budget);
  Run result;
  while (trainer.steps() < options.steps && !*interrupted) {
    const StepResult step = trainer.step(session);
    result.losses.push_back(step.loss);
    result.seconds.push_back(step.seconds);
    result.peak = std::max(result.peak, step.peak);
    const Summary summary = session ? session->summary() : Summary{};
    const ShownStep shown{trainer.steps(), step.loss, step.peak, summary.replays, step.seconds};
    progress.show(shown);
    metrics.write(shown, budget, summary);
    if (options.save && (trainer.steps() % options.save_every == 0 || trainer.steps() == options.steps)) {
      trainer.save(*options.save);
    }
  }
  result.interrupted = *interrupted;
  if (result.interrupted && options.save) trainer.save(*options.save);
  result.fingerprint = trainer.fingerprint();
  return result;
}

// The second step: Adam's state is there from then on.
Bytes plain_peak(const TrainerOptions& options, const Text& text) {
  Trainer trainer(options, text);
  (void)trainer.step(nullptr);
  return trainer.step(nullptr).peak;
}

bool is_multiple(const std::string& budget) {
  return budget.ends_with('x') || budget.ends_with('X');
}

// ---- files ---------------------------------------------------------------------------------------------------------

void write_files(const TrainOptions& options, Session& session) {
  if (!options.report && !options.trace) return;
  session.wait_for_plan();
  const auto trace = session.trace();
  if (!trace) {
    std::cerr << "reprise train: no step was seen from its first operator to the end of backward: there is nothing to "
                 "report\n";
    return;
  }
  if (options.trace) write_trace(*options.trace, *trace);
  if (!options.report) return;
  write_report(*options.report, session, {.title = "A step of reprise train", .cancel = cancel_on_interrupt()});
}

void tell_files(const TrainOptions& options) {
  for (const auto& [name, file] : {std::pair("saved", options.save), std::pair("metrics", options.metrics),
                                   std::pair("trace", options.trace), std::pair("report", options.report)}) {
    if (file && std::filesystem::exists(*file)) std::cout << name << ": " << shown(*file) << "\n";
  }
}

// ---- re-running checkpoints, as they are used elsewhere ------------------------------------------------------------

// The fewest blocks that have to be run again to fit, and what that costs; or the least that can be reached.
Side rerunning_side(const TrainOptions& options, const Text& text, Bytes budget) {
  Side side;
  side.name = "re-running";
  Trainer trainer(trainer_options(options, text), text);
  (void)trainer.step(nullptr);
  std::int64_t blocks = 0;
  Bytes peak = 0;
  do {
    ++blocks;
    peak = trainer.step(nullptr, blocks).peak;
  } while (peak > budget && blocks < options.layers);
  std::vector<double> seconds, ratios;
  constexpr int pairs = 5;
  for (int i = 0; i < pairs; ++i) {
    const double plain = trainer.step(nullptr).seconds;
    const StepResult rerun = trainer.step(nullptr, blocks);
    peak = std::max(peak, rerun.peak);
    seconds.push_back(rerun.seconds);
    ratios.push_back(rerun.seconds / plain);
  }
  side.peak = peak;
  side.seconds = median(seconds);
  side.ratio = median(ratios);
  const std::string which =
      blocks == options.layers ? "every block" : "the first " + std::to_string(blocks) + " blocks";
  side.note = peak <= budget
                  ? "runs " + which + " again in backward to fit; measured over " + std::to_string(pairs) + " steps"
                  : "does not fit, though it runs " + which + " again in backward";
  return side;
}

// The first step has no plan, and the online policy does not reach as low as plans do.
std::string what_to_do(const BudgetError& error) {
  const Bytes need = error.need();
  std::string text = "Try --budget " + std::to_string((need + need / 20) >> 20) + "MiB or more";
  if (const auto smallest = error.facts().smallest_feasible) {
    text += "; plans exist down to " + format_bytes(*smallest);
  }
  return text + "; with --plans FOLDER the plans of such a run let the next one start lower";
}

// ---- the jobs ------------------------------------------------------------------------------------------------------

Side side_of(const char* name, const Run& run) {
  Side side;
  side.name = name;
  side.peak = run.peak;
  side.seconds = median(run.seconds);
  if (!run.losses.empty()) side.loss = run.losses.back();
  return side;
}

void introduce(const TrainOptions& options, const Text& text, const Trainer& trainer) {
  std::cerr << "GPT with " << options.layers << " blocks and " << trainer.parameters() << " parameters, "
            << options.batch << " x " << options.context << " characters a step, from a text of " << text.characters()
            << "; Adam; " << at::get_num_threads() << " threads\n";
}

int compare(const TrainOptions& options, const Text& text) {
  std::optional<Run> plain;
  {
    Trainer trainer(trainer_options(options, text), text);
    introduce(options, text, trainer);
    plain = run(options, "plain", trainer, nullptr);
  }
  if (plain->interrupted) {
    std::cerr << "stopped after " << plain->losses.size() << " plain steps: there is nothing to compare\n";
    return exit_done;
  }
  const Bytes budget = parse_budget(options.budget, plain->peak);
  std::optional<Run> within;
  Session session = new_session(options, budget);
  Summary summary;
  {
    Trainer trainer(trainer_options(options, text), text);
    session.label_modules(*trainer.model());
    within = run(options, "budget", trainer, &session);
    write_files(options, session);
    summary = session.summary();
  }
  const bool identical = plain->losses == within->losses && plain->fingerprint == within->fingerprint;
  std::vector<Side> sides = {side_of("plain", *plain), side_of("in budget", *within)};
  sides[1].ratio = *sides[1].seconds / *sides[0].seconds;
  if (!within->interrupted) sides.push_back(rerunning_side(options, text, budget));
  std::cout << "\n"
            << table_of(sides, options.steps) << "identical: "
            << (within->interrupted ? "not known, the training was stopped"
                : identical         ? "yes, bit for bit"
                                    : "NO")
            << (within->interrupted ? "" : " (every loss, all parameters, Adam's state)") << "\n\n"
            << summary;
  tell_files(options);
  if (within->interrupted) return exit_done;
  return identical && within->peak <= budget ? exit_done : exit_refused;
}

int train_once(const TrainOptions& options, const Text& text) {
  const TrainerOptions shape = trainer_options(options, text);
  const Bytes budget =
      options.plain ? 0 : parse_budget(options.budget, is_multiple(options.budget) ? plain_peak(shape, text) : 0);
  Trainer trainer(shape, text);
  if (options.resume && std::filesystem::exists(*options.save)) {
    trainer.load(*options.save);
    std::cerr << "going on after step " << trainer.steps() << "\n";
  }
  introduce(options, text, trainer);
  std::optional<Session> session;
  if (!options.plain) {
    session.emplace(new_session(options, budget));
    session->label_modules(*trainer.model());
  }
  const Run result = run(options, "train", trainer, session ? &*session : nullptr);
  if (!result.losses.empty()) {
    std::cout << table_of({side_of(options.plain ? "plain" : "in budget", result)}, trainer.steps());
  }
  std::cout << "fingerprint of parameters and Adam's state: " << std::hex << result.fingerprint << std::dec << "\n";
  if (session) {
    write_files(options, *session);
    std::cout << "\n" << session->summary();
  }
  tell_files(options);
  return session && result.peak > budget ? exit_refused : exit_done;
}

}  // namespace

int train(const TrainOptions& options) try {
  check_options(options);
  if (options.threads > 0) at::set_num_threads(options.threads);
  meter::keep_heap();  // plain steps have the heap of the others, or they would not be compared with the same
  const Text text = read_text(options);
  return options.compare ? compare(options, text) : train_once(options, text);
} catch (const BudgetError& error) {
  std::cerr << "reprise train: " << error.what() << ". " << what_to_do(error) << "\n";
  return exit_infeasible;
}

}  // namespace reprise::tools
