// Graph files: `cost`, `size` and `edges`, as other projects write them.
#pragma once

#include <string_view>

#include "reprise/trace/trace.h"

namespace reprise::internal {

// Throws BadInput; the trace has passed `check`.
[[nodiscard]] Trace parse_graph(std::string_view json);

}  // namespace reprise::internal
