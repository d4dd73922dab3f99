#include "torch/memory/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/torch/session.h"
#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

namespace fs = std::filesystem;

// Returns the number that the text starts with, after spaces. None if there is none ("max"), or it is larger than any
// memory.
std::optional<Bytes> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  Bytes number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || number < 0) return std::nullopt;
  return number;
}

std::optional<Bytes> limit_in(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return number_in(line);
}

// The smallest limit from the group up to the root. Inside a container the group's path may be that of the host, which
// does not exist here: what does exist is looked at.
std::optional<Bytes> smallest_limit(const fs::path& mounted, const std::string& group, const char* file) {
  std::optional<Bytes> smallest;
  for (fs::path path = fs::path("/" + group).lexically_normal();; path = path.parent_path()) {
    const auto limit = limit_in(mounted / path.relative_path() / file);
    if (limit) smallest = std::min(smallest.value_or(*limit), *limit);
    if (!path.has_relative_path()) return smallest;
  }
}

bool has_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// Each line of /proc/self/cgroup is "number:controllers:path"; version 2 has the number 0 and no controllers.
std::optional<Bytes> limit_of_groups(const fs::path& root) {
  const fs::path mounted = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  std::optional<Bytes> smallest;
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    std::optional<Bytes> limit;
    if (controllers.empty()) limit = smallest_limit(mounted, group, "memory.max");
    if (has_memory(controllers)) limit = smallest_limit(mounted / "memory", group, "memory.limit_in_bytes");
    if (limit) smallest = std::min(smallest.value_or(*limit), *limit);
  }
  return smallest;
}

Bytes memory_of_machine(const fs::path& root) {
  constexpr std::string_view key = "MemTotal:";
  std::ifstream in(root / "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    if (const auto kibibytes = number_in(std::string_view(line).substr(key.size()))) return *kibibytes * 1024;
  }
  throw Error("[memory] " + (root / "proc/meminfo").string() +
              " has no MemTotal: the memory of this machine is unknown");
}

}  // namespace

Bytes memory_limit(const fs::path& root) {
  const Bytes machine = memory_of_machine(root);
  return std::min(limit_of_groups(root).value_or(machine), machine);
}

Bytes fraction_of_memory(double share, const fs::path& root) {
  if (!(share > 0 && share <= 1)) {
    std::ostringstream text;
    text << "[memory] the share is " << share << ", but has to be above 0 and at most 1";
    throw BadOption(text.str());
  }
  return static_cast<Bytes>(share * static_cast<double>(memory_limit(root)));
}

}  // namespace reprise::internal
