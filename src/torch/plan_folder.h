// Plans in a folder, one file for each trace and budget.
#pragma once

#include <filesystem>
#include <optional>

#include "reprise/trace/plan.h"

namespace reprise::internal {

// A plan that is valid for this trace and keeps to this budget; none if there is none, or no folder.
[[nodiscard]] std::optional<Plan> read_from_folder(const std::filesystem::path& folder, const Trace&, Bytes budget);

// Does nothing without a folder. A file appears whole or not at all. Throws Error if it cannot be written.
void write_to_folder(const std::filesystem::path& folder, const Trace&, const Plan&);

}  // namespace reprise::internal
