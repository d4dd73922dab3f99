// reprise plan: a plan for a budget.
#include "plan_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <memory>
#include <optional>

#include "command.h"
#include "interrupt.h"
#include "progress_bar.h"
#include "reprise/report/json.h"
#include "reprise/report/text.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"

namespace reprise::tools {
namespace {

struct PlanArguments {
  std::filesystem::path file;
  std::string budget;
  std::optional<std::string> planner;
  std::optional<int> segments, every, slots;
  double time_limit = 0;  // not given
  std::optional<std::uint64_t> moves;
  std::uint64_t seed = 1;
  std::optional<std::filesystem::path> output;
  bool json = false;
};

constexpr const char* plan_summary = "find what to evict and when to replay it, so that a trace fits a budget";

constexpr const char* plan_description =
    "Reads a trace and searches for the cheapest plan whose live bytes never pass the budget. The interpreter "
    "proves the plan before it is printed. A lower bound comes with it: how much cheaper any other plan could be at "
    "most.\n"
    "Planning stops when the time is over, or earlier when the plan is proven to be optimal. Ctrl-C stops it with "
    "the best plan so far; a second Ctrl-C ends the program.\n"
    "If no plan is found, the result has the smallest budget for which one was found, and the moment and the values "
    "that keep the budget from going lower.";

constexpr const char* plan_footer = R"(Examples:
  reprise plan step.json --budget 0.5x
        half of what keeping everything needs
  reprise plan step.json --budget 2GiB --time-limit 30 --output plan.json
        search longer, save the plan; then: reprise simulate step.json plan.json
  reprise plan step.json --budget 2GiB --segments 8 --json
        the cost of activation checkpointing in 8 segments

Exit codes:
  0  there is a plan
  1  a defect of Reprise
  2  wrong usage, a file that cannot be read or written
  3  no plan was found for this budget
)";

constexpr const char* budget_help =
    "The most bytes that may be live at any time: a number of bytes (1500000), with a unit (512MiB, 1.5GB), or a "
    "multiple of the peak of keeping everything (0.8x). Required.";

constexpr const char* plan_json_help =
    "Print the result as one JSON object on one line and nothing else: status (optimal, feasible, infeasible), "
    "planner, cost, cost_ratio (cost over the cost of running everything once), overhead (cost_ratio - 1), "
    "peak_bytes, budget_bytes, keep_everything_peak_bytes, floor_bytes, plain_cost, lower_bound, lower_bound_ratio, "
    "gap, replays, puts, gets, actions, moves, seconds, cancelled, notes, name. If infeasible, also "
    "smallest_feasible_bytes and blocker, and cost, cost_ratio, overhead, peak_bytes, gap, replays, puts, gets and "
    "actions are null.";

void add_options(CLI::App& command, PlanArguments& arguments) {
  constexpr int most = std::numeric_limits<int>::max();
  add_trace_argument(command, arguments.file);
  command.add_option("--budget", arguments.budget, budget_help)->type_name("BYTES")->required();
  command
      .add_option("--planner", arguments.planner,
                  "The planner to use; 'reprise planners' lists all of them. Default: best, or the planner that one "
                  "of the next three options chooses.")
      ->type_name("NAME");
  command
      .add_option("--segments", arguments.segments,
                  "Cut forward into this many segments of equal length. Chooses the planner segments.")
      ->type_name("K")
      ->check(whole_number(1, most));
  command
      .add_option("--every", arguments.every,
                  "Cut forward into segments of this many operators. Chooses the planner every, whose default is 4.")
      ->type_name("N")
      ->check(whole_number(1, most));
  command
      .add_option("--slots", arguments.slots,
                  "Remember this many states in memory, the first one included. Chooses the planner revolve; also "
                  "for h-revolve. Default of both: as many as the budget allows.")
      ->type_name("S")
      ->check(whole_number(1, most));
  add_time_limit(command, arguments.time_limit,
                 "How long to plan, in seconds. More time gives cheaper plans and sharper bounds. Default: 5.");
  command
      .add_option("--moves", arguments.moves,
                  "Make this many moves and read no clock, so that the same file, budget and seed give the same "
                  "plan everywhere, unless --time-limit is given, too, and is over first.")
      ->type_name("N")
      ->check(whole_number(1, std::numeric_limits<std::uint64_t>::max()));
  command
      .add_option("--seed", arguments.seed,
                  "Seed of the random numbers of the search. Another seed may find another plan. Default: 1.")
      ->type_name("N")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  command.add_option("--output", arguments.output, "Write the plan to this file, if there is one.")->type_name("FILE");
  add_json_flag(command, arguments.json, plan_json_help);
}

// An option of one planner chooses it, and contradicts any other.
std::string name_of_planner(const PlanArguments& arguments) {
  struct Choice {
    const char* option;
    bool given;
    std::string planner, other_planner;
  };
  std::optional<std::string> planner = arguments.planner;
  if (planner)
    std::transform(planner->begin(), planner->end(), planner->begin(), [](char c) {
      return c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
  for (const Choice& choice : {Choice{"--segments", arguments.segments.has_value(), "segments", "segments"},
                               Choice{"--every", arguments.every.has_value(), "every", "every"},
                               Choice{"--slots", arguments.slots.has_value(), "revolve", "h-revolve"}}) {
    if (!choice.given) continue;
    if (!planner) planner = choice.planner;
    if (planner != choice.planner && planner != choice.other_planner) {
      throw UsageError(fmt::format("{} is for the planner {}, not for {}", choice.option, choice.planner, *planner));
    }
  }
  if (planner == "segments" && !arguments.segments) throw UsageError("the planner segments needs --segments K");
  return planner.value_or("best");
}

PlannerChoice planner_of(const PlanArguments& arguments) {
  const std::string name = name_of_planner(arguments);
  if (arguments.segments) return SegmentsPlanner{.count = arguments.segments};
  if (arguments.every) return EveryPlanner{*arguments.every};
  if (arguments.slots && name == "h-revolve") return HRevolvePlanner{arguments.slots};
  if (arguments.slots) return RevolvePlanner{arguments.slots};
  return name;
}

PlanOptions options_of(const PlanArguments& arguments, const Trace& trace) {
  PlanOptions options;
  options.planner = planner_of(arguments);
  options.budget = parse_budget_option(arguments.budget, trace);
  if (arguments.time_limit > 0) options.time_limit = std::chrono::duration<double>(arguments.time_limit);
  options.moves = arguments.moves;
  options.seed = arguments.seed;
  return options;
}

int run_plan(const PlanArguments& arguments) {
  const Trace trace = load_trace(arguments.file);
  const PlanOptions options = options_of(arguments, trace);
  if (arguments.output) require_writable(*arguments.output, {arguments.file});

  if (arguments.moves && arguments.time_limit > 0) cancel_after(arguments.time_limit);
  const PlanResult result = plan_with_progress(trace, options);
  const bool saved = arguments.output && result.has_plan();
  if (saved) save([&] { write_plan(*arguments.output, result.plan); });
  std::string text = arguments.json ? json_line(trace, result) + "\n" : to_text(trace, result);
  if (saved && !arguments.json) {
    text += fmt::format("  {:<12}{}; to prove it again: reprise simulate {} {}\n", "saved as", shown(*arguments.output),
                        shown(arguments.file), shown(*arguments.output));
  }
  print_out(text);
  return result.has_plan() ? exit_done : exit_infeasible;
}

}  // namespace

PlanResult plan_with_progress(const Trace& trace, PlanOptions options) {
  options.cancel = cancel_on_interrupt();
  ProgressBar bar(options.moves ? std::nullopt : std::optional(options.time_limit.count()), options.cancel);
  options.progress = [&bar](const PlanProgress& progress) {
    std::string text = progress.cost_ratio ? fmt::format("cost {:.4f}", *progress.cost_ratio) : "no plan yet";
    if (progress.lower_bound) text += fmt::format(", at least {:.4f}", *progress.lower_bound);
    bar.update(progress.share_done, std::move(text));
  };
  return make_plan(trace, options);
}

Bytes parse_budget_option(const std::string& text, const Trace& trace) {
  try {
    return parse_budget(text, keep_everything(trace).budget);
  } catch (const BadOption& error) {
    throw UsageError(fmt::format("--budget: {}", error.what()));
  }
}

void add_plan(CLI::App& app, Run& run) {
  CLI::App* const command = add_command(app, "plan", plan_summary, plan_description, plan_footer);
  const auto arguments = std::make_shared<PlanArguments>();
  add_options(*command, *arguments);
  command->callback([arguments, &run] { run = [arguments] { return run_plan(*arguments); }; });
}

}  // namespace reprise::tools
