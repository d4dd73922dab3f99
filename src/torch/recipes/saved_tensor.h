// A saved tensor: what autograd wants back in backward, said without the tensor.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <exception>
#include <string>

#include "torch/libtorch/libtorch.h"
#include "torch/libtorch/tensor_view.h"
#include "torch/recipes/fingerprint.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

// The tensor that was saved, for as long as the program has it, and the node that made it: not to be followed.
struct Original {
  using Pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor{Pointer()};
  const torch::autograd::Node* maker = nullptr;  // none: it is a leaf
  std::uint32_t output = 0;                      // which of the maker's

  Original() = default;
  explicit Original(const at::Tensor&);
  // Returns whether it is an output of the node that asks for it now, if that can be known.
  [[nodiscard]] bool is_of_current_node() const;
  // Returns who made it, as LibTorch says it: ", which is output 0 of Mul,", or nothing.
  [[nodiscard]] std::string made_by() const;
  // Throws what LibTorch throws if it has been detached in place since.
  void check_attached() const;
};

// Belongs to a recording, and changes under the arbiter's lock.
struct SavedTensor {
  View view;
  libtorch::Version version;  // of the tensor that was saved; disabled: writes cannot be seen
  std::uint32_t expected_version = 0;
  Id value = no_value;        // none: it waits for the operator in which it was saved to end, or belongs to no value
  c10::Storage waiting;       // while it does
  Fingerprint fingerprint;    // of what was evicted; empty: nothing to compare with
  std::exception_ptr unread;  // what was thrown when it was to be taken: the device had failed by then
  int attached_in = 0;        // how many passes of backward had ended by then
  Original original;

  // Returns whether the version counter has seen no write since the save.
  [[nodiscard]] bool unmoved() const { return !version.enabled() || version.current_version() == expected_version; }
  // Returns the tensor itself, if it needs no gradient and is still what it was, in this storage; else none.
  [[nodiscard]] at::Tensor same_in(const c10::Storage&) const;
  // Throws what LibTorch throws if it has. Under the arbiter's lock autograd's graph must not be looked at: then the
  // text does not say what made the tensor.
  void check_unmoved(bool under_arbiter = false) const;
};

}  // namespace reprise::internal
