// checkpoint(): saying by hand what to forget.
//
//   auto y = reprise::checkpoint([&](torch::Tensor x) { return block->forward(x); }, x);
//
// The function runs once. What autograd saves of it for backward is forgotten as soon as the function itself lets go of
// it, and replayed when backward asks: the operators, not the function, so that random numbers, batch statistics, hooks
// and everything else the function does happen once. Values that the function gets from outside, its inputs and
// captured parameters, are held for that until backward is over.
//
// Inputs and outputs may be anything. Calls can be nested and chained. Where gradients are off, the function runs
// plainly. Inside a step of a Session with a budget, a plan decides what is forgotten where there is one, and may keep
// more.
//
// What is written in place between the call and backward, and is needed to replay, is an error that names the operator;
// what was saved itself is an error of LibTorch's own, in its words.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "reprise/trace/trace.h"

namespace reprise {

namespace internal {
class SessionState;
struct RegionBefore;
}  // namespace internal

// What is known from earlier calls at the same place of the program: their operators are followed instead of recorded
// anew, and verified once. Any thread may use it.
class CheckpointSite {
 public:
  CheckpointSite();
  ~CheckpointSite();
  CheckpointSite(const CheckpointSite&) = delete;
  CheckpointSite& operator=(const CheckpointSite&) = delete;

 private:
  friend class CheckpointRegion;
  std::shared_ptr<internal::SessionState> state_;
};

// While it lives, what this thread's operators save for backward is forgotten. `checkpoint` is a call inside of one.
// Regions of a thread end in the opposite order.
class CheckpointRegion {
 public:
  explicit CheckpointRegion(CheckpointSite&);
  ~CheckpointRegion();
  CheckpointRegion(const CheckpointRegion&) = delete;
  CheckpointRegion& operator=(const CheckpointRegion&) = delete;

  // Whether anything is: not where gradients are off.
  [[nodiscard]] bool forgets() const { return before_ != nullptr; }
  // Of values that were forgotten in it so far.
  [[nodiscard]] Bytes forgotten() const;

 private:
  std::unique_ptr<internal::RegionBefore> before_;  // nullptr: nothing is to be forgotten
};

template <class Function, class... Inputs>
std::invoke_result_t<Function, Inputs...> checkpoint(Function&& function, Inputs&&... inputs) {
  static CheckpointSite site;
  const CheckpointRegion region(site);
  return std::invoke(std::forward<Function>(function), std::forward<Inputs>(inputs)...);
}

// Mistakes that can be seen before anything runs.
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
