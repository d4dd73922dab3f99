// Saved tensors' hooks: one for each tensor that autograd keeps of the forward pass.
//
// A hook remembers how the tensor lay in its storage and which value that was (saved_tensor.h), not the tensor. When
// backward asks, it takes the value where it is, or has it recomputed. It does LibTorch's own check for writes since
// the save, in the same words. What is not plain memory on the CPU is kept as it is.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>
#include <optional>

#include "torch/libtorch/pooled.h"
#include "torch/values/recording.h"

namespace reprise::internal {

class SavedHook final : public torch::autograd::SavedVariableHooks, public Pooled<SavedHook, 2048> {
 public:
  void call_pack_hook(const at::Tensor&) override;
  at::Tensor call_unpack_hook() override;
  ~SavedHook() override;

 private:
  // What a recording has of the value that backward asks for.
  struct Asked {
    Id value = no_value;
    c10::Storage storage;  // empty: it has to be recomputed
    std::optional<c10::Stream> made_on;
    Fingerprint expected;
    std::shared_ptr<const TierCopy> below;
  };

  [[nodiscard]] at::Tensor unpacked();
  // Throws what was thrown when its fingerprint was to be read.
  [[nodiscard]] Asked ask();
  void hold(const at::Tensor&);
  // Compares what was recomputed; it may be recomputed once more.
  void verify(c10::Storage&, const Fingerprint& expected);
  // Recomputes the value, and lets no one compare it from now on: only uninitialized bytes differ.
  void accept_uninitialized(c10::Storage&);

  std::shared_ptr<Recording> recording_;  // none: it holds the tensor itself
  SavedTensor saved_;
  at::Tensor held_;           // the tensor itself, if it is not ours to evict
  bool copied_seen_ = false;  // by modes of the program's, when it is asked for
  bool needs_gradient_ = false;
};

}  // namespace reprise::internal
