// checkpoint_sequential() runs a sequence of modules in segments, each of them a checkpoint().
//
//   auto y = reprise::checkpoint_sequential(model, 4, x);   // model: a torch::nn::Sequential or a range of callables
//
// Segments are balanced by the bytes that their modules evict, or by the time that they take, as measured; not by the
// number of modules. The first call at a place of the program measures, with every module as a segment of its own; from
// the second call on there are as many segments as asked for. Models with as many modules that go through the same call
// share what was measured.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <source_location>
#include <utility>
#include <vector>

#include "reprise/export.h"
#include "reprise/torch/checkpoint.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Chooses what makes segments equal.
enum class Balance {
  bytes,  // the bytes that modules evict
  time,   // the time that their forward takes
};

// Returns the ends of segments whose largest one is as small as possible: ascending, the last end is the number of
// weights. Throws BadOption unless 1 <= segments <= number of weights.
[[nodiscard]] REPRISE_EXPORT std::vector<std::size_t> balanced_segments(const std::vector<double>& weights,
                                                                        int segments);

namespace internal {

// What is known about the modules that go through one call of checkpoint_sequential, from earlier calls there.
class REPRISE_EXPORT CheckpointedSequence {
 public:
  // Returns the one of this place of the program, for this many modules. Never freed. Any thread.
  [[nodiscard]] static CheckpointedSequence& at(const std::source_location& place, std::size_t modules);

  // Returns where its segments end. Throws BadOption unless 1 <= segments <= modules.
  [[nodiscard]] std::vector<std::size_t> ends(int segments, Balance);
  [[nodiscard]] CheckpointSite& site(std::size_t segment) { return *sites_[segment]; }
  // Returns the present time, for `measured`.
  [[nodiscard]] static double seconds();
  void measured(std::size_t module, Bytes evicted, double seconds);

  explicit CheckpointedSequence(std::size_t modules);

 private:
  const std::vector<std::unique_ptr<CheckpointSite>> sites_;  // by module that begins a segment
  std::vector<double> bytes_, seconds_;                       // by module
  std::size_t measured_ = 0;
};

template <class Module, class Value>
auto call_module(Module& module, Value&& value) {
  if constexpr (requires { module(std::forward<Value>(value)); }) {
    return module(std::forward<Value>(value));
  } else if constexpr (requires { module.forward(std::forward<Value>(value)); }) {
    return module.forward(std::forward<Value>(value));
  } else {
    return module->forward(std::forward<Value>(value));
  }
}

}  // namespace internal

// Runs `value` through all modules and returns the result. Throws BadOption unless 1 <= segments <= number of modules.
template <class Modules, class Value>
Value checkpoint_sequential(Modules&& modules, int segments, Value value, Balance balance = Balance::bytes,
                            std::source_location place = std::source_location::current()) {
  using internal::CheckpointedSequence;
  auto&& range = [&]() -> auto& {
    if constexpr (requires { std::begin(modules); }) {
      return modules;
    } else {
      return *modules;
    }
  }
  ();
  const auto count = static_cast<std::size_t>(std::distance(std::begin(range), std::end(range)));
  auto module = std::begin(range);
  CheckpointedSequence& known = CheckpointedSequence::at(place, count);
  std::size_t first = 0;
  for (const std::size_t end : known.ends(segments, balance)) {
    const double start = CheckpointedSequence::seconds();
    const CheckpointRegion region(known.site(first));
    for (std::size_t i = first; i < end; ++i, ++module) value = internal::call_module(*module, std::move(value));
    if (region.evicts() && end == first + 1)
      known.measured(first, region.evicted(), CheckpointedSequence::seconds() - start);
    first = end;
  }
  return value;
}

}  // namespace reprise
