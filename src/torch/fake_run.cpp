#include "torch/fake_run.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <ATen/record_function.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reprise/trace/error.h"
#include "torch/heap.h"
#include "torch/libtorch.h"
#include "torch/meter.h"

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

struct UnknownContext final : at::ObserverContext {
  bool unknown = false;
};

std::unique_ptr<at::ObserverContext> look_at_inputs(const at::RecordFunction& function) {
  auto context = std::make_unique<UnknownContext>();
  context->unknown = any_unknown(function.inputs());
  return context;
}

void mark_outputs(const at::RecordFunction& function, at::ObserverContext* given) {
  const bool unknown = given && static_cast<UnknownContext*>(given)->unknown;
  for (const c10::IValue& output : function.outputs()) {
    for_each_tensor(output, [&](const at::Tensor& tensor, c10::StorageImpl* storage, meter::Header* header) {
      if (heap::is_shared(header)) {
        // Indices of any number would lead anywhere.
        if (at::isIntegralType(tensor.scalar_type(), false)) heap::clear(header);
      } else if (unknown) {
        unknown_storages().emplace(storage, libtorch::share(storage).getWeakStorageImpl());
      }
    });
  }
}

// ---- nobody may ask for what is not known --------------------------------------------------------------------------

void refuse_unknown(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (any_unknown(torch::jit::last(*stack, op.schema().arguments().size()))) {
    throw Error("operator " + c10::toString(op.operator_name()) +
                " tells the program what is in a tensor, and tensors have no contents here: leave it out of what is "
                "measured");
  }
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, libtorch::key_of_draws), stack);
}

// The key is included on threads that are recorded, see draws.h. No operator that draws is among these.
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
