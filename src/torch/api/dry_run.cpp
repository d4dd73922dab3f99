#include "torch/api/dry_run.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reprise/trace/error.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/heap.h"
#include "torch/memory/meter.h"

namespace reprise::internal {
namespace {

// Calls `function` with every tensor that has memory of the meter's.
template <class Function>
void for_each_tensor(const c10::IValue& value, const Function& function) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || !libtorch::is_plain(tensor)) return;
    c10::StorageImpl* const storage = libtorch::storage_of(tensor);
    if (meter::Header* const header = meter::header_of(*storage)) function(tensor, storage, header);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, function);
  }
}

// ---- what depends on fake tensors is not known ---------------------------------------------------------------------

// Small storages that do. The handles keep no memory, but see to it that no other storage gets the same address.
std::unordered_map<const c10::StorageImpl*, libtorch::WeakStorage>& unknown_storages() {
  static auto& storages = *new std::unordered_map<const c10::StorageImpl*, libtorch::WeakStorage>;
  return storages;
}

bool any_unknown(c10::ArrayRef<const c10::IValue> values) {
  bool unknown = false;
  for (const c10::IValue& value : values) {
    for_each_tensor(value, [&](const at::Tensor&, c10::StorageImpl* storage, meter::Header* header) {
      unknown = unknown || heap::is_shared(header) || unknown_storages().contains(storage);
    });
  }
  return unknown;
}

// ---- what depends on whole numbers alone is computed ---------------------------------------------------------------

// Of what is computed of them, all are remembered: 1 - mask.float() is one, too.
std::unordered_map<const c10::StorageImpl*, libtorch::WeakStorage>& computed_storages() {
  static auto& storages = *new std::unordered_map<const c10::StorageImpl*, libtorch::WeakStorage>;
  return storages;
}

constexpr std::size_t most_computed = 32 << 20;  // bytes

bool is_whole(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), true);
}

// What its result may have to be computed. None of its inputs is unknown.
std::size_t most_to_compute(c10::ArrayRef<const c10::IValue> inputs) {
  constexpr std::size_t most_of_nothing = 1 << 20;
  bool any = false, all = true;
  const auto look_at = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !libtorch::is_plain(tensor)) return;
    any = true;
    all =
        all && (is_whole(tensor) || tensor.numel() == 1 || computed_storages().contains(libtorch::storage_of(tensor)));
  };
  for (const c10::IValue& input : inputs) {
    if (input.isTensor()) look_at(input.toTensor());
    if (input.isTensorList()) {
      for (const c10::IValue& element : input.toListRef()) look_at(element.toTensor());
    }
  }
  if (!any) return most_of_nothing;
  return all ? most_computed : 0;
}

// A step that is worth planning has neither infinities nor NaNs, and passes its own checks: who asks whether all of a
// tensor is true, or any, gets this for an answer.
std::optional<bool> answer_to_check(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (name == "aten::isfinite" || name == "aten::all") return true;
  constexpr std::array are_not = {"aten::isinf", "aten::isnan", "aten::isposinf", "aten::isneginf", "aten::any"};
  const bool is_not = std::find(are_not.begin(), are_not.end(), name) != are_not.end();
  return is_not ? std::optional(false) : std::nullopt;
}

// It asks how to do its work, and makes the same of any answer in bytes.
bool asks_for_itself(const at::RecordFunction& function) {
  return std::string_view(function.name()) == "aten::_grouped_mm";
}

struct UnknownContext final : at::ObserverContext {
  bool unknown = false, computes = false, asks_for_itself = false;
  std::optional<bool> answer;
};
thread_local int computing = 0;          // operators, one in another
thread_local int asking_for_itself = 0;  // likewise

std::unique_ptr<at::ObserverContext> look_at_inputs(const at::RecordFunction& function) {
  auto context = std::make_unique<UnknownContext>();
  context->unknown = any_unknown(function.inputs());
  context->asks_for_itself = asks_for_itself(function);
  asking_for_itself += context->asks_for_itself ? 1 : 0;
  if (context->unknown) context->answer = answer_to_check(function);
  if (context->answer) {
    context->unknown = false;
    context->computes = true;
    if (computing++ == 0) heap::own_pages_up_to(most_computed);
    return context;
  }
  const std::size_t most = context->unknown || computing > 0 ? 0 : most_to_compute(function.inputs());
  context->computes = most > 0 || (computing > 0 && !context->unknown);
  if (context->computes && computing++ == 0) heap::own_pages_up_to(most);
  return context;
}

void mark_outputs(const at::RecordFunction& function, at::ObserverContext* given) {
  const auto* const context = static_cast<UnknownContext*>(given);
  const bool unknown = context && context->unknown, computed = context && context->computes;
  if (context && context->asks_for_itself) --asking_for_itself;
  if (computed && --computing == 0) heap::own_pages_up_to(0);
  for (const c10::IValue& output : function.outputs()) {
    for_each_tensor(output, [&](const at::Tensor& tensor, c10::StorageImpl* storage, meter::Header* header) {
      if (heap::is_shared(header)) {
        // Indices of any number would lead anywhere.
        if (at::isIntegralType(tensor.scalar_type(), false)) heap::clear(header);
      } else if (computed) {
        if (context->answer) {
          std::memset(storage->mutable_data(), *context->answer ? 1 : 0, storage->nbytes());
          unknown_storages().erase(storage);  // by an operator that it called
        }
        computed_storages().emplace(storage, libtorch::share(storage).getWeakStorageImpl());
      } else if (unknown) {
        unknown_storages().emplace(storage, libtorch::share(storage).getWeakStorageImpl());
      }
    });
  }
}

// ---- what is not known may not be asked for
// --------------------------------------------------------------------------

// What an operator takes by whole numbers or truth values depends on these, and not on what it takes. How much of it
// there is depends on truth values alone (x[mask]): positions may be any.
bool asks_for_unknown(const c10::OperatorHandle& op, c10::ArrayRef<const c10::IValue> inputs) {
  const bool by_position = op.operator_name() == c10::OperatorName("aten::index", "Tensor");
  std::vector<c10::IValue> whole;
  const auto look_at = [&](const c10::IValue& input) {
    if (!input.isTensor() || !input.toTensor().defined() || !is_whole(input.toTensor())) return;
    const at::ScalarType type = input.toTensor().scalar_type();
    if (!by_position || type == at::kBool || type == at::kByte) whole.push_back(input);
  };
  for (const c10::IValue& input : inputs) {
    look_at(input);
    if (!input.isList()) continue;
    for (const c10::IValue& element : input.toListRef()) look_at(element);
  }
  if (whole.empty() && by_position) return false;
  return any_unknown(whole.empty() ? inputs : c10::ArrayRef<const c10::IValue>(whole.data(), whole.size()));
}

void refuse_unknown(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (asking_for_itself == 0 && asks_for_unknown(op, torch::jit::last(*stack, op.schema().arguments().size()))) {
    throw Error("operator " + c10::toString(op.operator_name()) +
                " tells the program what is in a tensor, and tensors have no contents here: leave it out of what is "
                "measured");
  }
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, libtorch::key_of_draws), stack);
}

// No operator that draws is among these, so that the key is free (random_tape.h).
void watch_for_questions() {
  static auto& registrations = *new std::vector<c10::RegistrationHandleRAII>;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema()) continue;
    if (!op->hasTag(at::Tag::data_dependent_output) && !op->hasTag(at::Tag::dynamic_output_shape)) continue;
    if (op->hasTag(at::Tag::nondeterministic_seeded)) continue;
    registrations.push_back(dispatcher.registerImpl(name, libtorch::key_of_draws,
                                                    c10::KernelFunction::makeFromBoxedFunction<&refuse_unknown>(),
                                                    std::nullopt, nullptr, "reprise"));
  }
}

}  // namespace

void begin_fake_run() {
  at::set_num_threads(1);  // the others are not there in a copy of the process
  watch_for_questions();
  at::addThreadLocalCallback(at::RecordFunctionCallback(look_at_inputs, mark_outputs)
                                 .needsInputs(true)
                                 .needsOutputs(true)
                                 .scopes({at::RecordScope::FUNCTION}));
  heap::share_pages();
}

}  // namespace reprise::internal
