#include "train_options.h"

#include <fmt/format.h>

#include <limits>

#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "torch/api/option_table.h"

namespace reprise::tools {
using namespace internal;
namespace {

constexpr const char* train_summary = "train a small character-level GPT inside a byte budget";

constexpr const char* train_description =
    "Trains on the text of a file, or on Reprise's own documentation. Everything counts in the budget: parameters, "
    "gradients, Adam's state and activations. With --compare, the same training runs three times: plainly, inside "
    "the budget, and for a few steps with checkpoints that run the model's blocks again. A table shows the memory "
    "and time of each, and whether the first two are the same, bit for bit.\n"
    "On a terminal, a line shows step, loss, live bytes against the budget, replays and the time left; elsewhere a "
    "plain line is printed from time to time. Ctrl-C ends the training after the current step, and saves it if "
    "--save is given.";

constexpr const char* train_footer = R"(Examples:
  reprise train --compare
  reprise train --budget 200MiB --layers 8 --steps 500 --data book.txt --save model.pt
  reprise train --budget 200MiB --layers 8 --steps 500 --data book.txt --save model.pt --resume
  reprise train --steps 100 --metrics steps.jsonl --report page.html

Exit codes:
  0  done
  1  the two trainings of --compare differ, or the peak passed the budget: a defect of Reprise
  2  wrong usage, a file that cannot be read or written
  3  the budget cannot be kept
)";

void add_model_options(CLI::App& command, TrainOptions& options) {
  command.add_option("--layers", options.layers, "The number of blocks of the model. Default: 4.")
      ->type_name("N")
      ->check(whole_number(1, 1000));
  command.add_option("--width", options.width, "The number of values that describe one character. Default: 128.")
      ->type_name("N")
      ->check(whole_number(1, 65536));
  command
      .add_option("--heads", options.heads, "The number of attention heads; it has to divide the width. Default: 4.")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  command
      .add_option("--context", options.context, "The number of characters that the model sees at once. Default: 128.")
      ->type_name("N")
      ->check(whole_number(1, 65536));
  command
      .add_option("--dropout", options.dropout,
                  "The share of values that dropout leaves out in training. Default: 0.1.")
      ->type_name("SHARE")
      ->check(number(0, 0.99));
}

void add_training_options(CLI::App& command, TrainOptions& options) {
  command.add_option("--data", options.data, "A text file, read byte by byte. Default: Reprise's documentation.")
      ->type_name("FILE");
  command
      .add_option("--steps", options.steps,
                  "The number of training steps, those before --resume included. Default: 40.")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  command.add_option("--batch", options.batch, "The number of texts in one step. Default: 32.")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000));
  command.add_option("--learning-rate", options.learning_rate, "The learning rate of Adam. Default: 0.001.")
      ->type_name("RATE")
      ->check(number(0, 10));
  command.add_option("--seed", options.seed, "The seed of parameters, data and dropout. Default: 1.")
      ->type_name("N")
      ->check(whole_number(0, UINT64_MAX));
  command
      .add_option("--threads", options.threads,
                  "The number of threads for LibTorch's operators. Default: LibTorch decides.")
      ->type_name("N")
      ->check(whole_number(1, 4096));
}

// An option that `reprise run` has, too.
template <class Value>
CLI::Option* add_session_option(CLI::App& command, const std::string& flag, Value& value) {
  const Option& option = option_of(flag);
  return command.add_option(flag, value, help_of(option))->type_name(std::string(option.placeholder));
}

void add_budget_options(CLI::App& command, TrainOptions& options) {
  command
      .add_option("--budget", options.budget,
                  "The most bytes that may be live: a number of bytes, with a unit (200MiB), or with an x a "
                  "multiple of the memory that a plain step needs, which is measured first. Default: 0.333x.")
      ->type_name("AMOUNT");
  command.add_flag("--compare", options.compare,
                   "Train plainly, then inside the budget, and measure re-running checkpoints; print a table.");
  command.add_flag("--plain", options.plain, "Train without Reprise: no budget, nothing is recorded.");
  add_session_option(command, "--planning-share", options.planning_share)
      ->check(number(0, std::numeric_limits<double>::infinity()));
  add_session_option(command, "--planning-time", options.planning_time)->check(number(0, most_planning_seconds));
  add_session_option(command, "--plans", options.plans);
}

void add_file_options(CLI::App& command, TrainOptions& options) {
  command
      .add_option("--save", options.save,
                  "Write model, optimizer and generators to this file, from time to time and at the end. The file "
                  "is replaced atomically: it is whole even if the run is killed.")
      ->type_name("FILE");
  command.add_option("--save-every", options.save_every, "The number of steps between two saves. Default: 10.")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  command.add_flag("--resume", options.resume,
                   "Continue from the file of --save if it exists, with the same bits as without a break.");
  command
      .add_option("--metrics", options.metrics,
                  "Write a line of JSON for each step to this file: step, loss, seconds, peak_bytes, budget_bytes, "
                  "replays, replay_seconds, packed_bytes, followed_plan. With --resume lines are added.")
      ->type_name("FILE");
  command.add_option("--report", options.report, "Write an HTML page about the last step to this file.")
      ->type_name("FILE");
  command
      .add_option("--trace", options.trace,
                  "Write the trace of the last step to this file, for `reprise plan`, `curve`, `inspect` and "
                  "`report`.")
      ->type_name("FILE");
}

}  // namespace

void add_train_command(CLI::App& app, const std::shared_ptr<TrainOptions>& options, const std::function<void()>& use) {
  CLI::App* const command = add_command(app, "train", train_summary, train_description, train_footer);
  add_model_options(*command, *options);
  add_training_options(*command, *options);
  add_budget_options(*command, *options);
  add_file_options(*command, *options);
  command->callback(use);
}

void check_options(const TrainOptions& options) {
  if (options.width % options.heads != 0) {
    throw UsageError(fmt::format("--heads is {}, which does not divide --width {}", options.heads, options.width));
  }
  if (options.plain && options.compare) throw UsageError("--plain and --compare contradict each other");
  if (options.plain && (options.report || options.trace)) {
    throw UsageError("--plain records nothing: there is no --report and no --trace of it");
  }
  if (options.resume && !options.save) throw UsageError("--resume needs --save, which names the file to go on from");
  if (options.compare && options.save) {
    throw UsageError("--compare trains twice: --save would not know which one to save");
  }
  try {
    (void)parse_budget(options.budget, 1000);
  } catch (const BadOption& error) {
    throw UsageError(fmt::format("--budget: {}", error.what()));
  }
  std::vector<std::filesystem::path> others;
  if (options.data) others.push_back(*options.data);
  for (const auto& file : {options.save, options.metrics, options.report, options.trace}) {
    if (!file) continue;
    require_writable(*file, others);
    others.push_back(*file);
  }
}

}  // namespace reprise::tools
