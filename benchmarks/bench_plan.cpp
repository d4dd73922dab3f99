// Plans every graph of a folder at several budgets: cost after 1 s and 5 s, the best heuristic, the bound, the gap.
//
// Every row is planned anew for each time limit, one thread. `reference` is the bound that an earlier experiment proved
// on the same graph and budget, and `/ref` our cost after the longest time over it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "benchmark_main.h"
#include "plan_reference.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/files.h"

namespace reprise::benchmarks {
namespace {

struct Settings {
  std::filesystem::path folder = std::filesystem::path(REPRISE_SOURCE_DIR).parent_path() / "shared/graphs";
  std::string graph;   // only graphs whose name contains this
  std::string budget;  // only this one
  std::vector<double> seconds{1, 5};
  bool json = false;
};

struct Case {
  std::filesystem::path file;
  std::string budget;
  std::optional<Reference> reference;
};

// The budgets of the reference table, and for graphs that are not in it three common ones.
std::vector<Case> cases_of(const Settings& settings) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(settings.folder)) {
    const bool wanted = entry.path().stem().string().find(settings.graph) != std::string::npos;
    if (entry.path().extension() == ".json" && wanted) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const auto& file : files) {
    const std::string name = file.stem().string();
    const std::size_t before = cases.size();
    for (const Reference& reference : references) {
      if (name == reference.graph) cases.push_back({file, reference.budget, reference});
    }
    if (cases.size() > before) continue;
    for (const char* budget : {"0.90", "0.70", "0.50"}) cases.push_back({file, budget, {}});
  }
  std::erase_if(cases, [&](const Case& c) { return !settings.budget.empty() && c.budget != settings.budget; });
  if (cases.empty() && !settings.budget.empty()) {
    for (const auto& file : files) cases.push_back({file, settings.budget, {}});
  }
  return cases;
}

Bytes budget_of(const std::string& text, const Trace& trace) {
  const std::string floor_prefix = "floor x ";
  if (text.starts_with(floor_prefix)) {
    return parse_budget(text.substr(floor_prefix.size()) + "x", floor_of(trace).bytes);
  }
  return parse_budget(text + "x", keep_everything(trace).budget);
}

std::string ratio(const std::optional<double>& value) {
  return value ? fmt::format("{:.6f}", *value) : "-";
}

// The cheapest of the three DTR heuristics, as they are.
std::optional<double> best_heuristic(const Trace& trace, Bytes budget) {
  std::optional<double> best;
  for (const char* planner : {"h-dtr", "h-local", "h-msps"}) {
    PlanOptions options;
    options.budget = budget;
    options.planner = planner;
    options.bounds = false;
    options.time_limit = std::chrono::seconds(0);  // no search for another budget if this one fails
    const PlanResult result = make_plan(trace, options);
    if (result.has_plan()) best = std::min(best.value_or(result.cost_ratio()), result.cost_ratio());
  }
  return best;
}

void measure(const Case& c, const Settings& settings) {
  const Trace trace = read_trace(c.file);
  const Bytes budget = budget_of(c.budget, trace);
  const std::optional<double> heuristic = best_heuristic(trace, budget);
  std::vector<std::optional<double>> costs;
  PlanResult last;
  for (const double seconds : settings.seconds) {
    PlanOptions options;
    options.budget = budget;
    options.time_limit = std::chrono::duration<double>(seconds);
    last = make_plan(trace, options);
    costs.push_back(last.has_plan() ? std::optional(last.cost_ratio()) : std::nullopt);
  }
  const std::string name = c.file.stem().string();
  if (settings.json) {
    nlohmann::json row = {
        {"graph", name}, {"budget", c.budget}, {"status", reprise::name(last.status)}, {"seconds", last.seconds}};
    const auto set = [&](const char* key, const std::optional<double>& value) {
      if (value) row[key] = *value;
    };
    set("heuristic", heuristic);
    for (std::size_t i = 0; i < costs.size(); ++i)
      set(fmt::format("cost_{:g}s", settings.seconds[i]).c_str(), costs[i]);
    row["lower_bound"] = last.lower_bound_ratio();
    if (c.reference) row["reference_bound"] = c.reference->bound;
    fmt::print("{}\n", row.dump());
    return;
  }
  std::string line = fmt::format("{:<22} {:>12} {:>10}", name, c.budget, ratio(heuristic));
  for (const auto& cost : costs) line += fmt::format(" {:>10}", ratio(cost));
  const bool planned = last.has_plan();
  line += fmt::format(" {:>10} {:>8}", ratio(last.lower_bound_ratio()),
                      last.status == PlanStatus::optimal ? "optimal"
                      : planned                          ? fmt::format("{:.3f}%", 100 * last.gap())
                                                         : "-");
  if (c.reference) {
    line += fmt::format(" {:>10} {:>8}", ratio(c.reference->bound),
                        planned ? fmt::format("{:.5f}", last.cost_ratio() / c.reference->bound) : "-");
  }
  fmt::print("{}\n", line);
}

}  // namespace

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Plans every graph of a folder at several budgets and prints costs, bounds and gaps."};
  app.add_option("--folder", settings.folder, "where the graph files are")->capture_default_str();
  app.add_option("--graph", settings.graph, "only graphs whose name contains this");
  app.add_option("--budget", settings.budget, "only this budget, as in the table: 0.50, or 'floor x 1.02'");
  app.add_option("--seconds", settings.seconds, "time limits, one run each")->delimiter(',')->capture_default_str();
  app.add_flag("--json", settings.json, "one JSON object a line instead of a table");
  CLI11_PARSE(app, argc, argv);
  if (!std::filesystem::is_directory(settings.folder)) {
    fmt::print(stderr, "skipped: there is no folder {} with graph files; name one with --folder\n",
               settings.folder.string());
    return 0;
  }
  if (!settings.json) {
    std::string line = fmt::format("{:<22} {:>12} {:>10}", "graph", "budget", "heuristic");
    for (const double seconds : settings.seconds) line += fmt::format(" {:>10}", fmt::format("{:g} s", seconds));
    fmt::print("{} {:>10} {:>8} {:>10} {:>8}\n", line, "bound", "gap", "reference", "/ref");
  }
  for (const Case& c : cases_of(settings)) {
    measure(c, settings);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace reprise::benchmarks
