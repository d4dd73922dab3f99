#include "command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "trace/printable.h"

namespace reprise::tools {
using namespace internal;

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary,
                      const std::string& description, const std::string& footer) {
  CLI::App* command = app.add_subcommand(name, summary + "\n" + description);
  command->footer(footer);
  return command;
}

void add_trace_argument(CLI::App& command, std::filesystem::path& path) {
  command.add_option("FILE", path, "A trace, or a graph with 'cost', 'size' and 'edges'; JSON.")
      ->type_name("")
      ->required();
}

Trace load_trace(const std::filesystem::path& path) {
  Trace trace = read_trace(path);
  if (trace.name.empty()) trace.name = path.stem().string();
  return trace;
}

void add_json_flag(CLI::App& command, bool& json, const std::string& description) {
  command.add_flag("--json", json, description);
}

void add_time_limit(CLI::App& command, double& seconds, const std::string& description) {
  command.add_option("--time-limit", seconds, description)->type_name("SECONDS")->check([](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool number = error == std::errc() && end == text.data() + text.size();
    return number && std::isfinite(value) && value > 0 ? ""
                                                       : fmt::format("'{}' is no number of seconds above zero", text);
  });
}

CLI::Validator whole_number(std::uint64_t smallest, std::uint64_t largest) {
  const auto check = [smallest, largest](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && smallest <= value && value <= largest) return {};
    return fmt::format("'{}' is no whole number from {} to {}", text, smallest, largest);
  };
  return {check, ""};
}

CLI::Validator number(double smallest, double largest) {
  const auto check = [smallest, largest](const std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && smallest <= value && value <= largest) return {};
    return fmt::format("'{}' is no number from {} to {}", text, smallest, largest);
  };
  return {check, ""};
}

void print_out(const std::string& text) {
  const std::string harmless = printable_lines(text);
  if (std::fwrite(harmless.data(), 1, harmless.size(), stdout) != harmless.size() || std::fflush(stdout) != 0) {
    throw UsageError(fmt::format("cannot write to the standard output: {}", std::strerror(errno)));
  }
}

std::string shown(const std::filesystem::path& path) {
  return printable_line(path.string());
}

namespace {

bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code missing;
  const auto status = std::filesystem::status(one, missing);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return false;  // as /dev/null
  if (std::filesystem::equivalent(one, other, missing)) return true;
  return std::filesystem::weakly_canonical(one, missing) == std::filesystem::weakly_canonical(other, missing);
}

}  // namespace

void require_writable(const std::filesystem::path& path, const std::vector<std::filesystem::path>& others) {
  const auto refuse = [&](const char* reason) {
    throw UsageError(fmt::format("{}: cannot be written: {}", path.string(), reason));
  };
  std::error_code ignored;
  if (path.empty()) throw UsageError("--output is empty, but has to name a file");
  if (std::filesystem::is_directory(path, ignored)) refuse("it is a folder");
  for (const std::filesystem::path& other : others) {
    if (is_same_file(path, other)) refuse("the same command reads or writes that file for something else");
  }
  if (std::filesystem::exists(path, ignored)) {
    if (access(path.c_str(), W_OK) != 0) refuse(std::strerror(errno));
    return;
  }
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!std::filesystem::is_directory(folder, ignored)) refuse("its folder does not exist");
  if (access(folder.c_str(), W_OK) != 0) refuse(std::strerror(errno));
}

void save(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace reprise::tools
