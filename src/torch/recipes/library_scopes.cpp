#include "torch/recipes/library_scopes.h"

#include "torch/libtorch/per_thread.h"

namespace reprise::internal {
namespace {

struct LibraryScopes {
  int open = 0;
};

}  // namespace

int& library_scopes() {
  return of_thread<LibraryScopes>().open;
}

// Casts of what a layer is given and gives are operators of the model.
bool is_library_scope(std::string_view scope) {
  return scope.starts_with("FSDP::") && !scope.starts_with("FSDP::cast_forward");
}

}  // namespace reprise::internal
