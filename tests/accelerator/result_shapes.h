// What results of operators look like. An operator that makes new tensors is launched on the simulated accelerator into
// memory that is allocated before; how much is known from the last time it was called with arguments like these.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

namespace reprise::testing::accelerator {

struct Shape {
  bool defined = false;
  std::vector<std::int64_t> sizes, strides;
  at::ScalarType scalars = at::kFloat;

  static Shape of(const at::Tensor&);
  [[nodiscard]] at::Tensor empty(c10::Device) const;  // undefined if this is
};
// Of one result of an operator: a tensor, or a list of them.
struct ResultShape {
  bool list = false;
  std::vector<Shape> tensors;
};
using ResultShapes = std::vector<ResultShape>;

// The operator, and all of its arguments that the shapes of results can depend on: everything but contents.
[[nodiscard]] std::string shape_key(const std::string& name, const std::vector<c10::IValue>& arguments);

[[nodiscard]] std::optional<ResultShapes> known_shapes(const std::string& key);
void remember_shapes(const std::string& key, ResultShapes);

}  // namespace reprise::testing::accelerator
