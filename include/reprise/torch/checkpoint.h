// checkpoint() chooses by hand what is evicted and recomputed: activation checkpointing, or gradient checkpointing.
//
//   auto y = reprise::checkpoint([&](torch::Tensor x) { return block->forward(x); }, x);
//
// The function runs once. Tensors that autograd saves in the function for backward are evicted as soon as the function
// releases them, and recomputed when backward asks. The operators are replayed, not the function, so that random
// numbers, batch statistics, hooks and everything else the function does happen once. Values that the function gets
// from outside (its inputs and captured parameters) are held until backward is over.
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
#include <source_location>
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

namespace internal {

// Returns the site of the calls at this place of the program, for calls of the same types there: `types` tells those
// apart. Sites are never freed. Any thread.
[[nodiscard]] REPRISE_EXPORT CheckpointSite& site_at(const std::source_location& place, const void* types);

// An object for each list of types, whose address tells them apart.
template <class... Types>
inline constexpr char types_of_call = 0;

template <class Function, class... Inputs>
std::invoke_result_t<Function, Inputs...> checkpoint_at(const std::source_location& place, Function&& function,
                                                        Inputs&&... inputs) {
  const CheckpointRegion region(site_at(place, &types_of_call<Function, Inputs...>));
  return std::invoke(std::forward<Function>(function), std::forward<Inputs>(inputs)...);
}

}  // namespace internal

// Calls function(inputs...) and returns its result; what autograd saves in the call is evicted. See above.
//
// Calls at one place of the program follow each other's recordings, with functions of any kind: a lambda, a
// std::function, a pointer. A parameter pack cannot be followed by `place`, so there is an overload for each number of
// inputs up to five; calls with more inputs are told apart by their types alone.
template <class Function, class A>
std::invoke_result_t<Function, A> checkpoint(Function&& function, A&& a,
                                             std::source_location place = std::source_location::current()) {
  return internal::checkpoint_at(place, std::forward<Function>(function), std::forward<A>(a));
}
template <class Function, class A, class B>
std::invoke_result_t<Function, A, B> checkpoint(Function&& function, A&& a, B&& b,
                                                std::source_location place = std::source_location::current()) {
  return internal::checkpoint_at(place, std::forward<Function>(function), std::forward<A>(a), std::forward<B>(b));
}
template <class Function, class A, class B, class C>
std::invoke_result_t<Function, A, B, C> checkpoint(Function&& function, A&& a, B&& b, C&& c,
                                                   std::source_location place = std::source_location::current()) {
  return internal::checkpoint_at(place, std::forward<Function>(function), std::forward<A>(a), std::forward<B>(b),
                                 std::forward<C>(c));
}
template <class Function, class A, class B, class C, class D>
std::invoke_result_t<Function, A, B, C, D> checkpoint(Function&& function, A&& a, B&& b, C&& c, D&& d,
                                                      std::source_location place = std::source_location::current()) {
  return internal::checkpoint_at(place, std::forward<Function>(function), std::forward<A>(a), std::forward<B>(b),
                                 std::forward<C>(c), std::forward<D>(d));
}
template <class Function, class A, class B, class C, class D, class E>
std::invoke_result_t<Function, A, B, C, D, E> checkpoint(Function&& function, A&& a, B&& b, C&& c, D&& d, E&& e,
                                                         std::source_location place = std::source_location::current()) {
  return internal::checkpoint_at(place, std::forward<Function>(function), std::forward<A>(a), std::forward<B>(b),
                                 std::forward<C>(c), std::forward<D>(d), std::forward<E>(e));
}

template <class Function, class... Inputs>
requires(sizeof...(Inputs) > 5) std::invoke_result_t<Function, Inputs...> checkpoint(Function&& function,
                                                                                     Inputs&&... inputs) {
  return internal::checkpoint_at(std::source_location(), std::forward<Function>(function),
                                 std::forward<Inputs>(inputs)...);
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
