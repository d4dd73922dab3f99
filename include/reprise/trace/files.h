// Reads and writes traces and plans as files. docs/formats.md documents the formats; what is written is read back
// exactly. Every function that reads throws BadInput with the file, the place and the reason. No content of a file
// crashes it, and a trace that was read has passed `check`. Every function that writes a file throws Error.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "reprise/export.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Reads a trace file, or a graph file (`cost`, `size`, `edges`), which becomes a trace with one operator, one value and
// one moment for every node, in the order of their ids.
[[nodiscard]] REPRISE_EXPORT Trace read_trace(const std::filesystem::path&);
[[nodiscard]] REPRISE_EXPORT Trace parse_trace(std::string_view json);

REPRISE_EXPORT void write_trace(const std::filesystem::path&, const Trace&);
[[nodiscard]] REPRISE_EXPORT std::string to_json(const Trace&);

[[nodiscard]] REPRISE_EXPORT Plan read_plan(const std::filesystem::path&);
[[nodiscard]] REPRISE_EXPORT Plan parse_plan(std::string_view json);

REPRISE_EXPORT void write_plan(const std::filesystem::path&, const Plan&);
[[nodiscard]] REPRISE_EXPORT std::string to_json(const Plan&);

}  // namespace reprise
