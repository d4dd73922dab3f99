// What a step changes that was there before it: contents of tensors, gradients, random generators. So that all of it
// can be put back, and the step be run once more.
//
// The first write to a tensor that is older than the step copies its contents (writes.h announces it), the first draw
// from a generator its state (random_tape.h), and the first gradient that a leaf gets in backward is preceded by a note
// of the one it had. A step that writes more than there is room for cannot be undone; nor can one that has written a
// parameter, because then an optimizer has begun, which has a state of its own.
//
// Of one thread: what others do meanwhile is not seen.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "torch/libtorch/libtorch.h"
#include "torch/memory/meter.h"

namespace reprise::internal {

class Undo {
 public:
  // Sees what this thread does from now on. Copies take no more than `most` bytes, which are counted.
  explicit Undo(Bytes most);
  ~Undo();
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  // Returns the one that sees what this thread does. Null if there is none.
  [[nodiscard]] static Undo* of_this_thread();

  // Returns why it cannot be put back, as the end of a sentence. Empty if it can.
  [[nodiscard]] const std::string& why_not_replayable() const { return why_not_replayable_; }
  // Puts everything back. Once, and only if nothing is in the way. It sees nothing any more.
  void put_back();

  // ---- called on its thread; nothing is thrown ----
  void before_write(const at::Tensor&) noexcept;
  void before_draw(const at::Generator&) noexcept;
  void before_gradient(const at::Tensor& leaf) noexcept;

 private:
  struct Contents {
    libtorch::WeakStorage storage;  // what the program has freed need not be put back
    std::size_t bytes;
    std::unique_ptr<char[]> copy;
  };
  struct Gradient {
    at::Tensor leaf, gradient;  // the gradient may be undefined
  };
  struct Drawn {
    at::Generator generator;
    libtorch::RandomState state;
  };

  void copy_contents(c10::StorageImpl&);
  void stop();

  const Bytes most_;
  const std::uint64_t began_;  // allocations before it
  Bytes copied_ = 0;
  std::string why_not_replayable_;
  std::unordered_set<const void*> known_;  // storages, leaves and generators that are in one of the lists
  std::vector<Contents> contents_;
  std::vector<Gradient> gradients_;
  std::vector<Drawn> drawn_;
  std::optional<at::CallbackHandle> nodes_;
  Undo* const outer_;
};

}  // namespace reprise::internal
