// Saved tensors: what autograd keeps of the forward pass, one hook for each.
//
// A hook remembers how the tensor lay in its storage and which value that was, not the tensor. When backward asks, it
// takes the value where it is, or has it rebuilt. It does LibTorch's own check for writes since the save, in the same
// words. What is not plain memory on the CPU is kept as it is.
#pragma once

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>
#include <vector>

#include "torch/fingerprint.h"
#include "torch/recording.h"
#include "torch/view.h"

namespace reprise::internal {

class SavedHook final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor&) override;
  at::Tensor call_unpack_hook() override;
  ~SavedHook() override;

  // Called by the recorder when the operator in which the tensor was saved has ended; the storage tells the value.
  void bind_late();
  // The operator failed: nobody will ask.
  void give_up();
  [[nodiscard]] bool unmoved() const { return !version_.enabled() || version_.current_version() == expected_version_; }

  // Throws what LibTorch throws if the tensor was written since it was saved.
  void check_unmoved() const;

  // These belong to the recording and change under the arbiter's lock.
  Id value = no_value;
  Fingerprint fingerprint;  // of what was forgotten; empty: nothing to compare with
  int attached_in = 0;      // how many passes of backward had ended by then

  View view;

 private:
  // Compares what was rebuilt; it may be rebuilt once more.
  void verify(c10::Storage&, const Fingerprint& expected);
  // What differs are bytes that nobody wrote: there is nothing to compare from now on.
  void accept_unwritten(c10::Storage&);
  [[noreturn]] void report_mismatch(Id of, std::size_t block, std::size_t blocks);

  std::shared_ptr<Recording> recording_;
  at::Tensor held_;       // the tensor itself, if it is not ours to forget
  c10::Storage waiting_;  // while the operator in which it was saved runs
  libtorch::Version version_;
  std::uint32_t expected_version_ = 0;
};

}  // namespace reprise::internal
