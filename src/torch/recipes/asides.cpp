#include "torch/recipes/asides.h"

#include "torch/libtorch/of_thread.h"

namespace reprise::internal {
namespace {

struct Asides {
  int open = 0;
};

}  // namespace

int& asides() {
  return of_thread<Asides>().open;
}

// Casts of what a layer is given and gives are operators of the model.
bool is_aside(std::string_view scope) {
  return scope.starts_with("FSDP::") && !scope.starts_with("FSDP::cast_forward");
}

}  // namespace reprise::internal
