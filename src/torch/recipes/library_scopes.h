// LibraryScopes: what a library does for itself between the operators of the model. FSDP gathers parameters from other
// processes before a layer, and frees them after it; what it does there is no part of any recipe.
#pragma once

#include <string_view>

namespace reprise::internal {

// Returns how many are open on this thread, one inside the other.
[[nodiscard]] int& library_scopes();

// Returns whether a scope of this name (torch.profiler.record_function) is one.
[[nodiscard]] bool is_library_scope(std::string_view scope);

}  // namespace reprise::internal
