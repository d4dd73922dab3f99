// The bits of tensors, kept outside LibTorch's allocator: remembering them changes neither the level nor the peak.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::benchmarks {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

class Bits {
 public:
  Bits() = default;
  // Undefined tensors count as such. Elements are taken in their logical order, whatever the strides are.
  explicit Bits(const NamedTensors&);

  // Writes the bits into tensors of the same shapes, as a user would: with copy_.
  void restore(const NamedTensors&) const;

  // The name of the first tensor whose bits, shape or being defined differ; none: all are the same. Not a number is
  // equal to itself here.
  [[nodiscard]] std::optional<std::string> first_difference(const Bits&) const;

  // How far the tensors are from the right ones: the largest difference as a share of the largest number of the same
  // tensor, over all tensors of floats. One of a pair undefined, or other sizes: the largest there is.
  [[nodiscard]] double relative_error(const Bits& right) const;

 private:
  struct Entry {
    std::string name;
    bool defined = false;
    bool floats = false;
    std::vector<char> bytes;
  };
  std::vector<Entry> entries_;
};

}  // namespace reprise::benchmarks
