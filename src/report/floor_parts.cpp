#include "report/floor_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/words.h"
#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

bool contains(const std::vector<Id>& values, Id v) {
  return std::find(values.begin(), values.end(), v) != values.end();
}

// "1 MiB of this, 2 MiB of that and 3 MiB of the other", without what there is none of.
std::string sum(std::initializer_list<std::pair<Bytes, const char*>> parts) {
  std::vector<std::string> said;
  for (const auto& [bytes, what] : parts) {
    if (bytes > 0) said.push_back(fmt::format("{} of {}", format_bytes(bytes), what));
  }
  if (said.empty()) return "";
  std::string text = said.front();
  for (std::size_t i = 1; i < said.size(); ++i) text += (i + 1 == said.size() ? " and " : ", ") + said[i];
  return text;
}

}  // namespace

FloorParts parts_of_floor(const Trace& trace, const Blocker& floor) {
  FloorParts parts;
  if (trace.moments.empty()) return parts;
  const Id m = floor.moment;
  parts.other = trace.moments[m].other;
  parts.workspace = trace.workspace(m);
  for (const Id v : floor.values) {
    const Value& value = trace.values[v];
    const bool made = contains(trace.outputs(m), v);
    if (made && value.takes_over) continue;  // the storage of an input
    const bool held = value.held && value.held->first <= m && m <= value.held->last;
    (contains(trace.inputs(m), v) ? parts.needed : made ? parts.made : held ? parts.held : parts.fixed) += value.bytes;
  }
  return parts;
}

std::string describe_floor(const Trace& trace, const Blocker& floor) {
  const FloorParts parts = parts_of_floor(trace, floor);
  const std::string own = sum({{parts.needed, "values"}, {parts.made, "results"}, {parts.workspace, "workspace"}});
  const std::string beside = sum({{parts.other, "other bytes"},
                                  {parts.held, "values that the program holds"},
                                  {parts.fixed, "values that cannot be recomputed"}});
  std::string text = describe_moment(trace, floor.moment);
  if (!own.empty()) text += ", which needs " + own;
  if (!beside.empty()) text += (own.empty() ? ", with " : ", beside ") + beside;
  return text;
}

}  // namespace reprise::internal
