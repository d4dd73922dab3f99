#include "torch/recipes/unwritten.h"

#include <algorithm>

namespace reprise::internal {

std::span<const Unwritten> unwritten_table() {
  static const auto& table = *new std::vector<Unwritten>{
#include "torch/recipes/unwritten.inc"
  };
  return table;
}

const Unwritten* find_unwritten(std::string_view name) {
  const auto table = unwritten_table();
  const auto row = std::find_if(table.begin(), table.end(), [&](const Unwritten& one) { return one.name == name; });
  return row == table.end() ? nullptr : &*row;
}

}  // namespace reprise::internal
