#include "torch/plans/plan_folder.h"

#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>

#include <cstdio>
#include <locale>
#include <sstream>
#include <string>
#include <system_error>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "trace/json_file.h"

namespace reprise::internal {
namespace {

// What stays the same from run to run: no costs, no other bytes.
std::string structure_of(const Trace& trace) {
  std::string text;
  const auto add = [&](auto number) { text += std::to_string(number) + ' '; };
  for (const Operator& op : trace.operators) {
    text += op.name + ' ';
    for (const Id value : op.inputs) add(value);
    text += '>';
    for (const Id value : op.outputs) add(value);
  }
  for (const Value& value : trace.values) add(value.bytes);
  for (const Moment& moment : trace.moments) {
    text += moment.name + ' ';
    for (const Id value : moment.needs) add(value);
  }
  for (const Tier& tier : trace.tiers) {
    text += tier.name + ' ';
    for (const TierEntry& entry : tier.entries) add(entry.value);
  }
  return text;
}

std::filesystem::path file_for(const std::filesystem::path& folder, const Trace& trace, Bytes budget) {
  const std::string structure = structure_of(trace);
  char name[80];
  std::snprintf(name, sizeof name, "%016llx-%lld.plan.json",
                static_cast<unsigned long long>(XXH3_64bits(structure.data(), structure.size())),
                static_cast<long long>(budget));
  return folder / name;
}

std::filesystem::path hints_file(const std::filesystem::path& folder, Bytes budget) {
  return folder / (std::to_string(budget) + ".hints.txt");
}

constexpr const char* first_line = "reprise-hints 1";

// What is larger is neither written nor read: others may be able to put files into the folder. That is some ten million
// actions.
constexpr std::size_t most_bytes = std::size_t{256} << 20;

void write_file(const std::filesystem::path& file, const std::string& text) try {
  if (text.size() > most_bytes) return;
  std::filesystem::create_directories(file.parent_path());
  write_text(file, text, WholeFile::Kind::of_folder);
} catch (const std::filesystem::filesystem_error& error) {
  throw Error("[session] option plans: " + std::string(error.what()));
}

}  // namespace

void require_plan_folder(const std::filesystem::path& folder) {
  const auto refuse = [&](const std::string& why) {
    throw BadOption("[session] option plans is '" + folder.string() + "': " + why);
  };
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) refuse(error ? error.message() : "it is no folder");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse("files cannot be written to it");
}

std::optional<Plan> read_from_folder(const std::filesystem::path& folder, const Trace& trace, Bytes budget) {
  if (folder.empty()) return std::nullopt;
  const std::filesystem::path file = file_for(folder, trace, budget);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  try {
    Plan plan = parse_plan(read_small_file(file, most_bytes));
    // Costs of tiers are those of the run that wrote it.
    plan.tiers = trace.tiers;
    plan.budget = budget;
    if (simulate(trace, plan, {.record_live = false}).valid()) return plan;
  } catch (const Error&) {  // a file that is not a plan is as good as none
  }
  return std::nullopt;
}

void write_to_folder(const std::filesystem::path& folder, const Trace& trace, const Plan& plan) {
  if (folder.empty()) return;
  write_file(file_for(folder, trace, plan.budget), to_json(plan));
}

std::vector<EvictionHints::Seen> read_advice(const std::filesystem::path& folder, Bytes budget) {
  if (folder.empty()) return {};
  std::error_code ignored;
  const std::filesystem::path path = hints_file(folder, budget);
  if (!std::filesystem::exists(path, ignored)) return {};
  std::istringstream file;
  try {
    file.str(read_small_file(path, most_bytes));
  } catch (const Error&) {  // as good as none
    return {};
  }
  file.imbue(std::locale::classic());
  std::string line;
  if (!std::getline(file, line) || line != first_line) return {};
  std::vector<EvictionHints::Seen> all;
  for (EvictionHints::Seen seen; file >> seen.structural_hash >> seen.kept >> seen.saved;) {
    if (!(seen.kept >= 0 && seen.kept <= seen.saved)) return {};
    all.push_back(seen);
  }
  if (!file.eof()) return {};
  return all;
}

void write_advice(const std::filesystem::path& folder, Bytes budget, const std::vector<EvictionHints::Seen>& all) {
  if (folder.empty()) return;
  std::ostringstream file;
  file.imbue(std::locale::classic());
  file << first_line << '\n';
  for (const EvictionHints::Seen& seen : all)
    file << seen.structural_hash << ' ' << seen.kept << ' ' << seen.saved << '\n';
  write_file(hints_file(folder, budget), file.str());
}

}  // namespace reprise::internal
