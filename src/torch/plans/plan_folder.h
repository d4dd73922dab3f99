// Plans in a folder, one file for each trace and budget; and what was learnt from them, one for each budget.
//
// Files are written for this user only. The folder may be one that others can write to: a plan is proven before it is
// followed, so a wrong one costs time at most; what is no regular file is not read, and links are not followed.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "reprise/trace/plan.h"
#include "torch/plans/eviction_hints.h"

namespace reprise::internal {

// A plan that is valid for this trace and keeps to this budget; none if there is none, or no folder.
[[nodiscard]] std::optional<Plan> read_from_folder(const std::filesystem::path& folder, const Trace&, Bytes budget);

// Makes the folder, if it is not there. Throws BadOption if files cannot be written to it.
void require_plan_folder(const std::filesystem::path& folder);

// Does nothing without a folder. A file appears whole or not at all. Throws Error if it cannot be written.
void write_to_folder(const std::filesystem::path& folder, const Trace&, const Plan&);

// The same for hints, which is there before there is a trace. Nothing is read from a file that makes no sense.
[[nodiscard]] std::vector<EvictionHints::Seen> read_advice(const std::filesystem::path& folder, Bytes budget);
void write_advice(const std::filesystem::path& folder, Bytes budget, const std::vector<EvictionHints::Seen>&);

}  // namespace reprise::internal
