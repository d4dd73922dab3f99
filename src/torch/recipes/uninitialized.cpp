#include "torch/recipes/uninitialized.h"

#include <algorithm>

namespace reprise::internal {

std::span<const UninitializedParts> uninitialized_table() {
  // Checked with LibTorch 2.13.0 by executables/uninitialized.py, which reads these lines.
  // operator, results, arguments, reads uninitialized memory
  static const auto& table = *new std::vector<UninitializedParts>{
      {"aten::_compute_linear_combination.out", {}, {}, true},
      {"aten::_ctc_loss", {1}, {}, false},
      {"aten::_ctc_loss.Tensor", {1}, {}, false},
      {"aten::_ctc_loss.Tensor_out", {}, {7}, false},
      {"aten::_ctc_loss.out", {}, {7}, false},
      {"aten::linalg_lstsq", {}, {}, true},
      {"aten::linalg_lstsq.out", {}, {}, true},
      {"aten::mkldnn_rnn_layer", {3}, {}, false},
      {"aten::mkldnn_rnn_layer.out", {}, {19}, false},
  };
  return table;
}

const UninitializedParts* find_uninitialized_parts(std::string_view name) {
  const auto table = uninitialized_table();
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const UninitializedParts& one) { return one.name == name; });
  return row == table.end() ? nullptr : &*row;
}

}  // namespace reprise::internal
