// reprise fit: the largest batch, or length, that trains inside a budget.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "command.h"
#include "interrupt.h"
#include "progress_bar.h"
#include "reprise/report/fit_views.h"
#include "reprise/report/json.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "trace/json_file.h"

namespace reprise::tools {
using namespace internal;
namespace {

struct FitArguments {
  std::filesystem::path first, second;
  std::optional<std::filesystem::path> third;
  std::string budget, sizes;
  std::optional<std::string> wanted;
  std::optional<std::int64_t> at_most;
  double time_limit = FitOptions().time_limit.count();
  std::optional<std::filesystem::path> output;
  bool json = false;
};

constexpr std::int64_t largest_size = std::int64_t{1} << 40;

constexpr const char* fit_summary = "find the largest batch or length that trains inside a budget, and its cost";

constexpr const char* fit_description =
    "Reads traces of one program at two or three sizes of its batch, or of its sequences, continues every number in "
    "them to other sizes, and plans those. Prints, for each size, the peak if everything is kept, the overhead of its "
    "plan and the cost per sample.\n"
    "Two sizes are enough for a batch: bytes and costs are straight lines. Three are for the length of sequences, "
    "because attention grows with its square. Sizes of 1 are special to many operators: begin with 2 or more. Bytes "
    "that grow evenly are predicted exactly; costs only as well as they were measured. Session::largest does all of "
    "this in a program, and confirms it by a real step.\n"
    "Half of the time goes into finding the largest size, half into the plans. Ctrl-C stops with the results so far; a "
    "second Ctrl-C ends the program.";

constexpr const char* fit_footer = R"(Examples:
  reprise run --trace 4.json -- ./my_trainer --batch 4
  reprise run --trace 8.json -- ./my_trainer --batch 8
  reprise fit 4.json 8.json --sizes 4,8 --budget 2GiB
        the largest batch
  reprise fit 4.json 8.json --sizes 4,8 --budget 2GiB --wanted 16,32,64 --output fit.svg
        these batches, and a picture

Exit codes:
  0  a size fits
  1  a defect of Reprise
  2  wrong usage, a file that cannot be read or written, traces that are not of one program
  3  no size fits
)";

constexpr const char* fit_json_help =
    "Print the result as one JSON object on one line and nothing else: budget_bytes, recorded, points (size, recorded, "
    "status, keep_everything_peak_bytes, floor_bytes, plain_cost, plain_cost_per_sample, cost, cost_per_sample, "
    "overhead, peak_bytes, replays, puts, gets, smallest_feasible_bytes of each), largest, cheapest (sizes, or null), "
    "reached_the_end, advice, seconds, cancelled.";

std::vector<std::int64_t> sizes_of(const std::string& option, std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (std::string_view rest = text;;) {
    const std::string_view item = rest.substr(0, rest.find(','));
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), size);
    if (error != std::errc() || end != item.data() + item.size() || size < 1 || size > largest_size) {
      throw UsageError(fmt::format("{}: '{}' is no list of sizes above zero, as 8,16", option, text));
    }
    sizes.push_back(size);
    if (item.size() == rest.size()) return sizes;
    rest.remove_prefix(item.size() + 1);
  }
}

Growth growth_of(const FitArguments& arguments) {
  std::vector<std::filesystem::path> files = {arguments.first, arguments.second};
  if (arguments.third) files.push_back(*arguments.third);
  const std::vector<std::int64_t> sizes = sizes_of("--sizes", arguments.sizes);
  if (sizes.size() != files.size()) {
    throw UsageError(fmt::format("--sizes: '{}' has {} sizes, and there are {} traces", arguments.sizes, sizes.size(),
                                 files.size()));
  }
  std::vector<SizedTrace> recorded;
  for (std::size_t i = 0; i < files.size(); ++i) recorded.push_back({sizes[i], load_trace(files[i])});
  return Growth(std::move(recorded));
}

Bytes budget_of(const FitArguments& arguments) {
  try {
    return parse_bytes(arguments.budget);
  } catch (const BadOption& error) {
    throw UsageError(fmt::format("--budget: {}", error.what()));
  }
}

int run_fit(const FitArguments& arguments) {
  FitOptions options;
  options.budget = budget_of(arguments);
  if (arguments.wanted) options.wanted = sizes_of("--wanted", *arguments.wanted);
  options.at_most = arguments.at_most;
  options.time_limit = std::chrono::duration<double>(arguments.time_limit);
  const Growth growth = growth_of(arguments);
  if (arguments.output) {
    require_writable(*arguments.output,
                     {arguments.first, arguments.second, arguments.third.value_or(arguments.second)});
  }

  options.cancel = cancel_on_interrupt();
  Fit fit;
  {
    ProgressBar bar(options.time_limit.count(), options.cancel);
    options.progress = [&bar](double share, std::int64_t size) { bar.update(share, fmt::format("size {}", size)); };
    fit = make_fit(growth, options);
  }
  if (arguments.output) save([&] { write_text(*arguments.output, to_svg(fit, growth.recorded().back().trace.name)); });
  std::string text = arguments.json ? json_line(fit) + "\n" : to_text(fit) + "\n" + advice(fit) + "\n";
  if (fit.cancelled && !arguments.json) text += "This run was stopped early; a full run may find a larger size.\n";
  if (arguments.output && !arguments.json) text += fmt::format("The picture is in {}.\n", shown(*arguments.output));
  print_out(text);
  return fit.largest ? exit_done : exit_infeasible;
}

}  // namespace

void add_fit(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "fit", fit_summary, fit_description, fit_footer);
  const auto arguments = std::make_shared<FitArguments>();
  command->add_option("FIRST", arguments->first, "A trace of the program; JSON.")->type_name("")->required();
  command->add_option("SECOND", arguments->second, "A trace of the same program at another size.")
      ->type_name("")
      ->required();
  command->add_option("THIRD", arguments->third, "One more, for what does not grow evenly.")->type_name("");
  command->add_option("--sizes", arguments->sizes, "The sizes of the traces, in the order of the files. Required.")
      ->type_name("N,N")
      ->required();
  command
      ->add_option("--budget", arguments->budget,
                   "The most bytes that may be live at any time: a number of bytes (1500000), or with a unit (512MiB, "
                   "1.5GB). Required.")
      ->type_name("BYTES")
      ->required();
  command
      ->add_option("--wanted", arguments->wanted,
                   "Plan for these sizes. Default: the largest size that fits is searched for, and sizes up to it are "
                   "planned.")
      ->type_name("N,N");
  command
      ->add_option("--at-most", arguments->at_most,
                   "The largest size to look at in the search. Default: 64 times the largest size of a trace.")
      ->type_name("N")
      ->check(whole_number(1, largest_size));
  add_time_limit(*command, arguments->time_limit,
                 "How long to plan, in seconds, for all sizes together. More time gives cheaper plans. Default: 30.");
  command->add_option("--output", arguments->output, "Draw cost per sample against size to this file, as SVG.")
      ->type_name("FILE");
  add_json_flag(*command, arguments->json, fit_json_help);
  command->callback([arguments, &run] { run = [arguments] { return run_fit(*arguments); }; });
}

}  // namespace reprise::tools
