#include "torch/replay/replay.h"

#include "reprise/torch/errors.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/arbiter.h"

namespace reprise::internal {

void Replay::run() {
  if (r_.context().is_capturing()) {
    throw SessionError("[session] a graph is being captured on " + r_.context().device().name() +
                       ", and its backward needs values that were evicted before: they cannot be recomputed inside of "
                       "it. Capture forward and backward together, or open the step after the capture");
  }
  const std::vector<Id>& operators = needs_.operators();
  const double start = thread_microseconds();
  for (const Id op : operators) run(op);
  double microseconds = thread_microseconds() - start;
  const Arbiter lock;
  if (r_.context().accelerator()) {  // the host only gave it the work: what counts is the time of the device
    microseconds = 0;
    for (const Id op : operators) microseconds += r_.journal().cost_of(op);
  }
  r_.context().counters().replays(static_cast<std::int64_t>(operators.size()), microseconds);
}

c10::Storage Replay::take(Id value) {
  ReplayNeeds::Slot& slot = needs_.slot(value);
  if (!slot.storage) slot.storage = copied_back(value);
  libtorch::use_here(slot.storage, slot.made_on);
  return slot.storage;
}

c10::Storage Replay::run_one(Id op, std::vector<std::pair<Id, c10::Storage>> inputs, Id output) {
  {
    const Arbiter lock;
    for (auto& [value, storage] : inputs) {
      ReplayNeeds::Slot& slot = needs_.slot(value);
      slot.storage = std::move(storage);
      slot.made_on = r_.values().made_on(value);
    }
    needs_.collect_alone(op);
  }
  needs_.want(output);
  run();
  return take(output);
}

void Replay::run(Id op) {
  const ReplayCall call = [&] {
    const Arbiter lock;
    return ReplayCall(lock, r_, op);
  }();
  written_.clear();
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) stack.push_back(argument(call, static_cast<int>(i)));
  try {
    call.run(stack);
  } catch (const draws::OffTheTape& error) {
    const Arbiter lock;
    const auto outputs = r_.cursor().recipes().outputs_of(op);
    const Id value = outputs.empty() ? no_value : outputs.front().value;
    r_.mark_inexact(op);
    throw MismatchError({call.info->name, op, value, 0, 0, error.what()});
  }
  take_outputs(op, stack);
  free_inputs(call);
}

c10::IValue Replay::argument(const ReplayCall& call, int index) {
  const ReplayCall::Argument& argument = call.arguments[index];
  const auto count = static_cast<int>(argument.inputs.size());
  switch (argument.kind) {
    case Argument::Kind::constant: return argument.constant;
    case Argument::Kind::unknown: return {};
    case Argument::Kind::tensor: return tensor(call, index, 0);
    case Argument::Kind::tensors: {
      c10::List<at::Tensor> list;
      for (int k = 0; k < count; ++k) list.push_back(tensor(call, index, k));
      return list;
    }
    case Argument::Kind::optional_tensors: {
      c10::List<std::optional<at::Tensor>> list;
      for (int k = 0; k < count; ++k) {
        const at::Tensor one = tensor(call, index, k);
        list.push_back(one.defined() ? std::optional(one) : std::nullopt);
      }
      return list;
    }
  }
  return {};
}

at::Tensor Replay::tensor(const ReplayCall& call, int index, int element) {
  const ReplayCall::Input& input = call.arguments[index].inputs[element];
  if (!input.defined) return {};
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    const Write& write = call.writes[i];
    if (write.argument != index || write.element != element) continue;
    if (write.access == Access::statistic && call.info->statistics_optional) return {};
    return input.view.of(written(static_cast<std::int16_t>(i), write, input));
  }
  return input.view.of(take(input.value));
}

// The storage that an operator writes into: never one that the program sees.
c10::Storage Replay::written(std::int16_t index, const Write& write, const ReplayCall::Input& input) {
  const Id before = input.value;
  c10::Storage storage;
  for (const Written& other : written_) {
    if (before != no_value && other.before == before) storage = other.storage;
  }
  if (!storage && before == no_value) {
    storage = libtorch::new_storage(static_cast<std::size_t>(write.bytes), input.view.device);
  }
  if (!storage) {
    (void)take(before);
    ReplayNeeds::Slot& slot = needs_.slot(before);
    storage = taken_over(slot, before);
    if (!storage) {
      storage = libtorch::new_storage(slot.storage.nbytes(), slot.storage.device());
      libtorch::copy(storage, slot.storage);
    }
  }
  written_.push_back({index, storage, before});
  return storage;
}

// Returns the storage of a value that only this operator needs; else empty. Ours is the only handle, and there cannot
// be another one: the program has none, and whoever would ask the recording for it needs the lock, and finds it
// unbound.
c10::Storage Replay::taken_over(ReplayNeeds::Slot& slot, Id value) {
  const Arbiter lock;
  Values& values = r_.values();
  const bool last = slot.uses == 1 && !slot.wanted && values.recomputable(value) && !values.pending().any_of(value) &&
                    !values.kept(value) && slot.storage.use_count() == 1;
  if (!last) return {};
  values.unbind(slot.storage.unsafeGetStorageImpl(), value);
  return std::exchange(slot.storage, c10::Storage());
}

bool Replay::keeps(Id value, bool wanted) const {
  return (keep_ == Keep::outputs && wanted) || (keep_ == Keep::what_is_awaited && r_.awaits(value));
}

void Replay::take_outputs(Id op, const torch::jit::Stack& results) {
  const Arbiter lock;
  for (const Output& output : r_.cursor().recipes().outputs_of(op)) {
    if (r_.values().recomputable(output.value)) take_output(output, results);
  }
}

void Replay::take_output(const Output& output, const torch::jit::Stack& results) {
  Values& values = r_.values();
  ReplayNeeds::Slot* const slot = needs_.find(output.value);
  const bool wanted = slot && slot->wanted;
  const bool used = slot && (slot->uses > 0 || wanted);
  const bool kept = keeps(output.value, wanted);
  if (!used && !kept) return;
  if (keep_ == Keep::secret) {
    slot->storage = storage_of(output, results);
    return;
  }
  if (c10::Storage there = values.storage(output.value)) {
    if (kept && !values.kept(output.value)) values.keep(output.value, there);
    if (used) {
      slot->storage = std::move(there);  // its owner may release it
    } else {
      Arbiter::discard(std::move(there));
    }
    return;
  }
  c10::Storage storage = storage_of(output, results);
  if (!storage) return;
  values.bind(storage.unsafeGetStorageImpl(), output.value);
  if (kept) values.keep(output.value, storage);
  if (used) slot->storage = std::move(storage);
}

c10::Storage Replay::storage_of(const Output& output, const torch::jit::Stack& results) const {
  if (output.write >= 0) {
    for (const Written& one : written_) {
      if (one.index == output.write) return one.storage;
    }
    return {};
  }
  const c10::IValue& result = results[output.result];
  const at::Tensor tensor = result.isTensor() ? result.toTensor() : result.toListRef()[output.element].toTensor();
  return tensor.defined() ? tensor.storage() : c10::Storage();
}

void Replay::free_inputs(const ReplayCall& call) {
  written_.clear();
  for (const ReplayCall::Argument& argument : call.arguments) {
    for (const ReplayCall::Input& input : argument.inputs) {
      if (input.value == no_value) continue;
      ReplayNeeds::Slot& slot = needs_.slot(input.value);
      if (--slot.uses == 0 && !slot.wanted) slot.storage = c10::Storage();
    }
  }
}

c10::Storage Replay::copied_back(Id value) {
  const double start = thread_microseconds(), start_of_wait = wall_microseconds();
  ReplayNeeds::Slot& slot = needs_.slot(value);
  TORCH_INTERNAL_ASSERT(slot.copy, "[reprise] value ", value, " has no copy");
  const bool counted_on = slot.copy->fetched();
  c10::Storage storage = contents_of_copy(value);
  const bool verified = slot.copy->verified();
  slot.copy.reset();
  const Arbiter lock;
  if (verified) r_.values().mark_copy_verified(value);
  r_.values().bind(storage.unsafeGetStorageImpl(), value);
  if (counted_on || keeps(value, slot.wanted)) r_.values().keep(value, storage);
  if (r_.values().copies(value).packed()) {
    r_.context().counters().packing(thread_microseconds() - start);
  } else {
    r_.context().counters().waiting(wall_microseconds() - start_of_wait);
  }
  return storage;
}

c10::Storage Replay::contents_of_copy(Id value) {
  const ValueCopy& copy = *needs_.slot(value).copy;
  try {
    return copy.contents();
  } catch (const MismatchError& error) {
    const Arbiter lock;
    MismatchError::Facts facts = error.facts();
    facts.value = value;
    facts.operator_index = r_.cursor().info(value).maker;
    if (facts.operator_index != no_operator) {
      facts.op = r_.cursor().recipes().operators[facts.operator_index].info->name;
    }
    throw MismatchError(std::move(facts));
  } catch (const Error& error) {
    if (copy.usable()) throw;  // it is not the copy that failed
    const Arbiter lock;
    if (!r_.values().recomputable(value)) fail_lost(r_, value, error.what());
    r_.values().copies(value).drop_below();
    r_.context().counters().note(std::string("a value is replayed because its copy is lost: ") + error.what());
    throw LostCopy();
  }
}

}  // namespace reprise::internal
