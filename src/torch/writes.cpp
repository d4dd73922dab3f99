#include "torch/writes.h"

#include <ATen/core/stack.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/zero_ops.h>

#include <memory>
#include <optional>
#include <utility>

#include "torch/arbiter.h"
#include "torch/interception.h"
#include "torch/process.h"
#include "torch/recording.h"
#include "torch/recordings.h"
#include "torch/undo.h"

namespace reprise::internal::writes {
namespace {

// Most of what backward writes is its own, gradients that it sums: no recording has met it.
bool is_known(c10::ArrayRef<at::Tensor> written) {
  const Arbiter lock;
  for (const Recording* const recording : process().recordings().all()) {
    for (const at::Tensor& tensor : written) {
      if (recording->values().bindings().find(libtorch::storage_of(tensor)) != no_value) return true;
    }
  }
  return false;
}

struct Needed {
  std::shared_ptr<Recording> recording;
  Id value;
  c10::Storage contents;
  std::optional<c10::Stream> made_on;
};

c10::SmallVector<Needed, 2> needed_of(const Written& written) {
  c10::SmallVector<Needed, 2> needed;
  const Arbiter lock;
  for (Recording* const one : process().recordings().all()) {
    for (const at::Tensor& tensor : written) {
      const Id value = one->values().bindings().find(libtorch::storage_of(tensor));
      if (value == no_value || !one->values().would_copy(value)) continue;
      if (auto recording = one->weak_from_this().lock()) {  // else it is about to end
        needed.push_back({std::move(recording), value, one->values().kept(value), one->values().made_on(value)});
      }
    }
  }
  return needed;
}

// Called in the middle of anything, where errors have nowhere to go.
std::optional<c10::Storage> copy_of(const Needed& needed) noexcept try {
  c10::Storage copy = libtorch::new_storage(needed.contents.nbytes(), needed.contents.device());
  libtorch::use_here(needed.contents, needed.made_on);
  libtorch::copy(copy, needed.contents);
  return copy;
} catch (const std::exception&) {
  return std::nullopt;
}

void tell_undo(c10::ArrayRef<at::Tensor> written) {
  Undo* const undo = Undo::of_this_thread();
  if (!undo) return;
  for (const at::Tensor& tensor : written) undo->before_write(tensor);
}

c10::DispatchKeySet below(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, libtorch::key_of_writes);
}

// Around a write to what recordings know.
class Seen {
 public:
  explicit Seen(Written written) : written_(std::move(written)) { save_contents(written_); }
  ~Seen() { take_over(written_); }  // also after an error: nobody knows what was written by then
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

 private:
  const Written written_;
};

void on_write(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  Written written = written_by(find_operator(op), torch::jit::last(*stack, op.schema().arguments().size()));
  std::optional<Seen> seen;
  tell_undo(written);
  if (is_known(written)) seen.emplace(std::move(written));
  op.redispatchBoxed(below(keys), stack);
}

// The same for an operator that writes its first argument, without boxes.
template <class Operator, class... Arguments>
at::Tensor& on_write_to(c10::DispatchKeySet keys, at::Tensor& self, Arguments... arguments) {
  std::optional<Seen> seen;
  tell_undo(self);
  if (self.has_storage() && is_known(self)) seen.emplace(Written{self});
  return Operator::redispatch(below(keys), self, arguments...);
}

// A tensor, or lists of them.
void add(Written& written, const c10::IValue& input) {
  if (input.isTensor()) {
    if (input.toTensor().defined() && input.toTensor().has_storage()) written.push_back(input.toTensor());
  } else if (input.isList()) {
    for (const c10::IValue& element : input.toListRef()) add(written, element);
  }
}

std::optional<c10::KernelFunction> kernel_for(const c10::OperatorHandle& op) {
  const OperatorInfo& info = find_operator(op);
  if (!info.writes && !info.batch_norm) return std::nullopt;
  // What backward itself writes with: it sums gradients, and makes numbers of other types and fresh memory.
  namespace ops = at::_ops;
  using c10::KernelFunction;
  if (info.name == "aten::add_.Tensor") {
    return KernelFunction::makeFromUnboxedRuntimeFunction(
        &on_write_to<ops::add__Tensor, const at::Tensor&, const at::Scalar&>);
  }
  if (info.name == "aten::copy_") {
    return KernelFunction::makeFromUnboxedRuntimeFunction(&on_write_to<ops::copy_, const at::Tensor&, bool>);
  }
  if (info.name == "aten::zero_") return KernelFunction::makeFromUnboxedRuntimeFunction(&on_write_to<ops::zero_>);
  return KernelFunction::makeFromBoxedFunction<&on_write>();
}

Interception& interception() {
  static auto& one = *new Interception(libtorch::key_of_writes, kernel_for);
  return one;
}
const bool made = (interception(), true);  // when the library is loaded: a fork may come at any time after that

}  // namespace

Written written_by(const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
  Written written;
  if (!info.writes && !info.batch_norm) return written;
  const bool training = info.is_training(inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool statistic =
        training && static_cast<int>(i) >= info.first_statistic && static_cast<int>(i) <= info.last_statistic;
    if (info.access[i] == Access::read && !statistic) continue;
    add(written, inputs[i]);
  }
  return written;
}

void save_contents(const Written& written) {
  if (written.empty()) return;
  tell_undo(written);
  auto all = needed_of(written);
  for (Needed& needed : all) {
    if (needed.recording->rules().is_capturing()) continue;  // it would not be copied now, but whenever the graph runs
    auto copy = copy_of(needed);
    const Arbiter lock;
    Values& values = needed.recording->values();
    if (!values.would_copy(needed.value)) continue;
    if (copy) {
      const auto made_on = libtorch::current_stream(copy->device());
      values.replace(needed.value, std::move(*copy), made_on);
    } else {
      values.lose(needed.value, Standing::lost_without_room);
    }
  }
  lose_contents(written);
}

void lose_contents(const Written& written) {
  const Arbiter lock;
  for (Recording* const recording : process().recordings().all()) {
    Values& values = recording->values();
    for (const at::Tensor& tensor : written) {
      const Id value = values.bindings().find(libtorch::storage_of(tensor));
      if (value != no_value) values.lose(value, Standing::lost);
    }
  }
}

void take_over(const Written& written) {
  if (written.empty()) return;
  const Arbiter lock;
  for (Recording* const recording : process().recordings().all()) {
    for (const at::Tensor& tensor : written) {
      recording->after_write(libtorch::storage_of(tensor), libtorch::version_of(tensor));
    }
  }
}

Watch::Watch() {
  {
    const Arbiter lock;
    if (process().recordings().all().empty()) return;
  }
  interception().update();
  watched_.emplace(libtorch::key_of_writes);
}

}  // namespace reprise::internal::writes
