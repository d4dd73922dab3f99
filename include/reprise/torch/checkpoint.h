// checkpoint() chooses by hand what is evicted and recomputed: activation checkpointing, or gradient checkpointing.
//
//   auto y = reprise::checkpoint([&](torch::Tensor x) { return block->forward(x); }, x);
//
// The function runs once. Tensors that autograd saves in it for backward are evicted as soon as the function lets go
// of them, and replayed when backward asks. The operators are replayed, not the function, so that random numbers, batch
// statistics, hooks and everything else the function does happen once. Values that the function gets from outside (its
// inputs and captured parameters) are held for that until backward is over.
//
// Inputs and outputs may be of any type. Calls can be nested and chained. Where gradients are disabled, the function
// runs plainly. Inside a step of a Session with a budget, a plan, if there is one, decides what is evicted, and may
// keep more.
//
// If a tensor that a replay needs is written in place between the call and backward, backward throws an error that
// names the operator. If the tensor was saved by autograd itself, the error is LibTorch's own.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

namespace internal {
class Site;
struct RegionBefore;
}  // namespace internal

// The knowledge from earlier calls at the same place of the program: their operators are followed instead of recorded
// anew, and verified once. Any thread may use it.
class REPRISE_EXPORT CheckpointSite {
 public:
  CheckpointSite();
  ~CheckpointSite();
  CheckpointSite(const CheckpointSite&) = delete;
  CheckpointSite& operator=(const CheckpointSite&) = delete;

 private:
  friend class CheckpointRegion;
  std::shared_ptr<internal::Site> site_;
};

// A region in which the tensors that this thread's operators save for backward are evicted, while it lives.
// `checkpoint` is a call inside of one. Regions of a thread end in the opposite order of their beginning.
class REPRISE_EXPORT CheckpointRegion {
 public:
  explicit CheckpointRegion(CheckpointSite&);
  ~CheckpointRegion();
  CheckpointRegion(const CheckpointRegion&) = delete;
  CheckpointRegion& operator=(const CheckpointRegion&) = delete;

  // True if this region evicts anything. False where gradients are disabled.
  [[nodiscard]] bool evicts() const { return before_ != nullptr; }
  // Returns the bytes of the values that were evicted in this region so far.
  [[nodiscard]] Bytes evicted() const;

 private:
  std::unique_ptr<internal::RegionBefore> before_;  // null: nothing is to be evicted
};

// Calls function(inputs...) and returns its result; what autograd saves in it is evicted. See above.
template <class Function, class... Inputs>
std::invoke_result_t<Function, Inputs...> checkpoint(Function&& function, Inputs&&... inputs) {
  static CheckpointSite site;
  const CheckpointRegion region(site);
  return std::invoke(std::forward<Function>(function), std::forward<Inputs>(inputs)...);
}

// These overloads catch mistakes before anything runs.
template <class Function>
void checkpoint(Function&&) {
  static_assert(!std::is_same_v<Function, Function>,
                "checkpoint(function, inputs...) needs at least one input: what backward is to reach");
}
template <class Function, class... Inputs>
requires(sizeof...(Inputs) > 0 && !std::is_invocable_v<Function, Inputs...>) void checkpoint(Function&&, Inputs&&...) {
  static_assert(std::is_invocable_v<Function, Inputs...>,
                "checkpoint(function, inputs...): the first argument cannot be called with the others");
}

}  // namespace reprise
