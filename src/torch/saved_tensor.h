// A saved tensor: what autograd wants back in backward, said without the tensor.
#pragma once

#include <exception>

#include "torch/fingerprint.h"
#include "torch/libtorch.h"
#include "torch/recipes.h"
#include "torch/view.h"

namespace reprise::internal {

// Belongs to a recording, and changes under the arbiter's lock.
struct SavedTensor {
  View view;
  libtorch::Version version;  // of the tensor that was saved; disabled: writes cannot be seen
  std::uint32_t expected_version = 0;
  Id value = no_value;        // none: it waits for the operator in which it was saved to end, or belongs to nobody
  c10::Storage waiting;       // while it does
  Fingerprint fingerprint;    // of what was forgotten; empty: nothing to compare with
  std::exception_ptr unread;  // what was thrown when it was to be taken: the device had failed by then
  int attached_in = 0;        // how many passes of backward had ended by then

  // The version counter has seen no write since the save.
  [[nodiscard]] bool unmoved() const { return !version.enabled() || version.current_version() == expected_version; }
  // Throws what LibTorch throws if it has.
  void check_unmoved() const {
    if (!unmoved()) libtorch::throw_modified(version, expected_version, view.device, view.dtype, view.sizes());
  }
};

}  // namespace reprise::internal
