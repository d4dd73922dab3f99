#include "torch/evict/writes.h"

#include <ATen/core/stack.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/zero_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "torch/evict/saved_values.h"
#include "torch/libtorch/per_thread.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/interception.h"
#include "torch/recipes/rollback.h"
#include "torch/values/recording.h"
#include "torch/values/recordings.h"

namespace reprise::internal::writes {
namespace {

// Most of what backward writes is its own, gradients that it sums: no recording has met it.
bool is_known(c10::ArrayRef<at::Tensor> written) {
  const Arbiter lock;
  for (const Recording* const recording : Recordings::of_process().all()) {
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
  for (Recording* const one : Recordings::of_process().all()) {
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

// Called in the middle of anything, where errors have untracked to go.
std::optional<c10::Storage> copy_of(const Needed& needed) noexcept try {
  c10::Storage copy = libtorch::new_storage(needed.contents.nbytes(), needed.contents.device());
  libtorch::use_here(needed.contents, needed.made_on);
  libtorch::copy(copy, needed.contents);
  return copy;
} catch (const std::exception&) {
  return std::nullopt;
}

void note_for_undo(c10::ArrayRef<at::Tensor> written) {
  Undo* const undo = Undo::of_this_thread();
  if (!undo) return;
  for (const at::Tensor& tensor : written) undo->before_write(tensor);
}

// A tensor, or lists of them.
template <class Function>
void for_each_tensor(const c10::IValue& input, const Function& function) {
  if (input.isTensor()) {
    if (input.toTensor().defined()) function(input.toTensor());
  } else if (input.isList()) {
    for (const c10::IValue& element : input.toListRef()) for_each_tensor(element, function);
  }
}

// Runs of backward in the process that are watched. Of the process and not of a thread, because LibTorch may go on with
// a run on another one.
constinit std::atomic<int> watches = 0;

// What the recorder sees is its own.
bool is_watched() {
  return watches.load(std::memory_order_relaxed) > 0 && operators_under_way() == 0;
}

c10::DispatchKeySet below(c10::DispatchKeySet keys) {
  return keys & c10::after_ADInplaceOrView_keyset;
}

// Around a write to what recordings know.
class Seen {
 public:
  explicit Seen(Written written) : written_(std::move(written)) { save_contents(written_); }
  ~Seen() { take_over(written_); }  // also after an error: what was written by then is unknown
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

 private:
  const Written written_;
};

void see_write(std::optional<Seen>& seen, const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (!is_watched()) return;
  Written written = written_by(find_operator(op), torch::jit::last(stack, op.schema().arguments().size()));
  note_for_undo(written);
  if (is_known(written)) seen.emplace(std::move(written));
}

// Returns whether the operator returns what is written.
bool is_returned(const c10::AliasInfo& written, const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [&](const c10::Argument& result) {
    return result.alias_info() && result.alias_info()->beforeSets() == written.beforeSets();
  });
}

// What LibTorch counts as written: what the operator declares and returns. (The noise of rrelu_with_noise_ is not.)
Written declared_by(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  Written declared;
  const auto& arguments = op.schema().arguments();
  const auto inputs = torch::jit::last(stack, arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* const alias = arguments[i].alias_info();
    if (!alias || !alias->isWrite() || !is_returned(*alias, op.schema())) continue;
    for_each_tensor(inputs[i], [&](const at::Tensor& t) { declared.push_back(t); });
  }
  return declared;
}

// The kernel at key_of_writes, in place of LibTorch's, and like that one: it counts the write in the tensor's version
// when it is done.
void on_write(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  std::optional<Seen> seen;
  see_write(seen, op, *stack);
  const Written declared = declared_by(op, *stack);
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(below(keys), stack);
  }
  for (const at::Tensor& tensor : declared) torch::autograd::impl::bump_version(tensor);
}

// The same for resize_ and resize_as_, which count as writes only where the size is another one afterwards.
void on_resize(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  std::optional<Seen> seen;
  see_write(seen, op, *stack);
  const at::Tensor self = torch::jit::last(*stack, op.schema().arguments().size()).front().toTensor();
  const c10::SymDimVector before(self.sym_sizes());
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    op.redispatchBoxed(below(keys), stack);
  }
  if (self.sym_sizes() != before) torch::autograd::impl::bump_version(self);
}

// The same for an operator that writes its first argument, without boxes.
template <class Operator, class... Arguments>
at::Tensor& on_write_to(c10::DispatchKeySet keys, at::Tensor& self, Arguments... arguments) {
  std::optional<Seen> seen;
  if (is_watched()) {
    note_for_undo(self);
    if (self.has_storage() && is_known(self)) seen.emplace(Written{self});
  }
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Operator::redispatch(below(keys), self, arguments...);
  }
  torch::autograd::impl::bump_version(self);
  return self;
}

// For an operator that had no kernel there: it writes what it does not declare, or counts by itself.
void on_uncounted_write(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  std::optional<Seen> seen;
  see_write(seen, op, *stack);
  op.redispatchBoxed(below(keys), stack);
}

std::optional<c10::KernelFunction> kernel_for(const c10::OperatorHandle& op) {
  const OperatorInfo& info = find_operator(op);
  if (!info.writes && !info.batch_norm) return std::nullopt;
  if (!op.hasKernelForDispatchKey(libtorch::key_of_writes)) {
    return c10::KernelFunction::makeFromBoxedFunction<&on_uncounted_write>();
  }
  if (!info.name.starts_with("aten::")) return std::nullopt;  // theirs may do more than count
  if (info.name == "aten::resize_" || info.name == "aten::resize_as_") {
    return c10::KernelFunction::makeFromBoxedFunction<&on_resize>();
  }
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
// When the library is loaded: a fork may come at any time after that. Its kernels follow with the first backward: what
// an operator is depends on kernels that libraries of accelerators have brought by then.
const bool made = (interception(), true);

}  // namespace

int& operators_under_way() {
  struct UnderWay {
    int operators = 0;
  };
  return of_thread<UnderWay>().operators;
}

Written written_by(const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
  Written written;
  if (!info.writes && !info.batch_norm) return written;
  const bool training = info.is_training(inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool statistic =
        training && static_cast<int>(i) >= info.first_statistic && static_cast<int>(i) <= info.last_statistic;
    if (info.access[i] == Access::read && !statistic) continue;
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (tensor.has_storage()) written.push_back(tensor);
    });
  }
  return written;
}

void save_contents(const Written& written) {
  if (written.empty()) return;
  note_for_undo(written);
  auto all = needed_of(written);
  for (Needed& needed : all) {
    if (needed.recording->context().is_capturing())
      continue;  // it would not be copied now, but whenever the graph runs
    auto copy = copy_of(needed);
    const Arbiter lock;
    Values& values = needed.recording->values();
    if (!values.would_copy(needed.value)) continue;
    if (copy) {
      const auto made_on = libtorch::current_stream(copy->device());
      values.replace(needed.value, std::move(*copy), made_on);
    } else {
      values.lose(needed.value, Availability::lost_no_room);
    }
  }
  lose_contents(written);
}

void lose_contents(const Written& written) {
  const Arbiter lock;
  for (Recording* const recording : Recordings::of_process().all()) {
    Values& values = recording->values();
    for (const at::Tensor& tensor : written) {
      const Id value = values.bindings().find(libtorch::storage_of(tensor));
      if (value != no_value) values.lose(value, Availability::lost);
    }
  }
}

void take_over(const Written& written) {
  if (written.empty()) return;
  const Arbiter lock;
  for (Recording* const recording : Recordings::of_process().all()) {
    for (const at::Tensor& tensor : written) {
      after_write(*recording, libtorch::storage_of(tensor), libtorch::version_of(tensor));
    }
  }
}

Watch::Watch() {
  {
    const Arbiter lock;
    if (Recordings::of_process().all().empty()) return;
  }
  interception().update();
  watching_ = true;
  watches.fetch_add(1, std::memory_order_relaxed);
}

Watch::~Watch() {
  if (watching_) watches.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace reprise::internal::writes
