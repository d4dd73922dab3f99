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

#include "torch/recording.h"

namespace reprise {

// How a tensor lies in its storage.
struct View {
  c10::SmallVector<std::int64_t, 8> dims;  // sizes, then strides
  std::int64_t offset = 0;
  at::ScalarType dtype = at::kFloat;

  View() = default;
  explicit View(const at::Tensor&);
  [[nodiscard]] c10::IntArrayRef sizes() const { return {dims.data(), dims.size() / 2}; }
  [[nodiscard]] c10::IntArrayRef strides() const { return {dims.data() + dims.size() / 2, dims.size() / 2}; }
  [[nodiscard]] at::Tensor of(c10::Storage) const;
  bool operator==(const View& other) const {
    return offset == other.offset && dtype == other.dtype && dims == other.dims;
  }
};

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

  Id value = no_value;
  View view;
  std::vector<std::uint64_t> fingerprint;  // of what was forgotten; empty: nothing to compare with

  static void* operator new(std::size_t);
  static void operator delete(void*);

 private:
  // Compares what was rebuilt; it may be rebuilt once more.
  void verify(c10::Storage&);
  // The blocks of the fingerprint that these contents do not have.
  [[nodiscard]] std::vector<std::size_t> differences(const c10::Storage&) const;
  // What differs are bytes that nobody wrote: there is nothing to compare from now on.
  void accept_unwritten(c10::Storage&);
  [[noreturn]] void report_mismatch(std::size_t block);

  std::shared_ptr<Recording> recording_;
  at::Tensor held_;       // the tensor itself, if it is not ours to forget
  c10::Storage waiting_;  // while the operator in which it was saved runs
  libtorch::Version version_;
  std::uint32_t expected_version_ = 0;
};

}  // namespace reprise
