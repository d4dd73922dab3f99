// Tiers have the same shape in trace files and in plan files.
#pragma once

#include <string>
#include <vector>

#include "reprise/trace/error.h"
#include "reprise/trace/trace.h"
#include "trace/json_reader.h"
#include "trace/json_writer.h"

namespace reprise::internal {

[[nodiscard]] std::vector<Tier> read_tiers(JsonReader& reader);
void write_tiers(JsonWriter& writer, const std::vector<Tier>& tiers);

// Returns the same error with the place in terms of the file, where that differs from the fields of the structs.
[[nodiscard]] BadInput with_place_in_file(const BadInput& error);

}  // namespace reprise::internal
