// What the commands share. Each is in a file of its own, reads its arguments, calls the library and prints.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::tools {

enum ExitCode : int {
  exit_done = 0,
  exit_refused = 1,     // an invalid plan; also: a defect of Reprise
  exit_usage = 2,       // wrong usage, bad input, a file that cannot be written
  exit_infeasible = 3,  // no plan for the budget
};

// Ends the command with exit_usage and this line on stderr.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Set by the command that the command line names; returns the exit code.
using Run = std::function<int()>;

void add_train(CLI::App& app, Run& run);
void add_run(CLI::App& app, Run& run);
void add_doctor(CLI::App& app, Run& run);
void add_plan(CLI::App& app, Run& run);
void add_simulate(CLI::App& app, Run& run);
void add_curve(CLI::App& app, Run& run);
void add_fit(CLI::App& app, Run& run);
void add_inspect(CLI::App& app, Run& run);
void add_report(CLI::App& app, Run& run);
void add_planners(CLI::App& app, Run& run);
void add_example(CLI::App& app, Run& run);
void add_completion(CLI::App& app, Run& run);

// ---- parts of commands ----

// A command with its one-line summary, and below that, in --help, its description, and its examples and exit codes.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary,
                      const std::string& description, const std::string& footer);

// FILE: a trace. Without a name of its own it gets that of the file.
void add_trace_argument(CLI::App& command, std::filesystem::path& path);
[[nodiscard]] Trace load_trace(const std::filesystem::path& path);

void add_json_flag(CLI::App& command, bool& json, const std::string& description);
void add_time_limit(CLI::App& command, double& seconds, const std::string& description);

// Refuse everything that is no whole number, or no number, in this range, in a sentence.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t smallest, std::uint64_t largest);
[[nodiscard]] CLI::Validator number(double smallest, double largest);

// ---- output ----

// Prints a text on stdout; '?' stands for what a terminal would act on. Throws UsageError if it does not arrive there.
void print_out(const std::string& text);

// Returns a path as a part of a line that people read.
[[nodiscard]] std::string shown(const std::filesystem::path& path);

// Throws UsageError if a file cannot be written, or is one of the others that the command reads or writes. Called
// before planning, so that no one waits for a result that cannot be saved. Does not touch the file.
void require_writable(const std::filesystem::path& path, const std::vector<std::filesystem::path>& others);
// Calls `write`, which writes the file; throws UsageError if it cannot be done.
void save(const std::function<void()>& write);

}  // namespace reprise::tools
