#include "torch/replay.h"

#include <algorithm>
#include <cstring>

#include "reprise/store/store.h"
#include "reprise/torch/errors.h"
#include "torch/arbiter.h"
#include "torch/clock.h"

namespace reprise::internal {
namespace {

[[noreturn]] void fail_lost(const std::string& why) {
  throw DiskError("[session] a value that cannot be rebuilt was on disk, and is lost: " + why);
}

}  // namespace

// ---- collecting ----------------------------------------------------------------------------------------------------

void Replay::collect(Id value) {
  if (touch(value)) open_.push_back(value);
  collect_open();
}

void Replay::collect_operator(Id op) {
  add_operator(op);
  collect_open();
}

void Replay::pin(Id value, Slot& slot) {
  slot.storage = r_.values().storage(value);
  if (!slot.storage) slot.copy = r_.values().copy(value);
}

void Replay::collect_open() {
  const Values& values = r_.values();
  while (!open_.empty()) {
    const Id value = open_.back();
    open_.pop_back();
    Slot& slot = slots_[value];
    if (from_ != From::leaves || !values.rebuildable(value)) pin(value, slot);
    if (slot.storage || slot.copy) continue;
    if (!values.rebuildable(value) && values.on_disk(value)) fail_lost("its file could not be read before");
    TORCH_INTERNAL_ASSERT(values.rebuildable(value), "[reprise] value ", value,
                          " is neither resident nor has it a recipe");
    add_operator(r_.course().info(value).maker);
  }
}

void Replay::add_operator(Id op) {
  const Recipes& recipes = r_.course().recipes();
  if (collected_.empty()) collected_.resize(recipes.operators.size());
  if (collected_[op]) return;
  collected_[op] = true;
  operators_.push_back(op);
  check_inputs(op);
  for (const Reference& reference : recipes.references_of(op)) {
    if (reference.value == no_value) continue;
    if (touch(reference.value)) open_.push_back(reference.value);
    ++slots_[reference.value].uses;
  }
}

bool Replay::collect_siblings() {
  constexpr Id far = 32;  // what lies further away is needed at another time
  if (operators_.empty() || r_.rules().forgets_everything()) return false;
  const auto [first, last] = std::minmax_element(operators_.begin(), operators_.end());
  const Id end = std::min(r_.course().next(), *last + far);
  std::vector<Id> siblings;
  for (Id op = std::max(*first, *last - far); op < end; ++op) {
    if (is_sibling(op)) siblings.push_back(op);
  }
  for (const Id op : siblings) collect_operator(op);
  return !siblings.empty();
}

// It needs nothing but what is there and what is collected, and of that something that takes longer than itself and
// would be gone.
bool Replay::is_sibling(Id op) const {
  const Recipes& recipes = r_.course().recipes();
  const Values& values = r_.values();
  if (collected_[op]) return false;
  const auto outputs = recipes.outputs_of(op);
  const bool awaited = std::any_of(outputs.begin(), outputs.end(), [&](const Output& output) {
    return values.rebuildable(output.value) && r_.awaits(output.value) && !values.packed(output.value) &&
           !values.resident(output.value);
  });
  if (!awaited) return false;
  bool worth_it = false;
  for (const Reference& reference : recipes.references_of(op)) {
    if (reference.value == no_value) continue;
    const Id maker = r_.course().info(reference.value).maker;
    if (maker != no_operator && collected_[maker] && values.rebuildable(reference.value)) {
      worth_it |= !r_.awaits(reference.value) && r_.journal().cost_of(maker) > r_.journal().cost_of(op);
    } else if (!values.rebuildable(reference.value) || !values.resident(reference.value)) {
      return false;  // from outside: whether it is what it was is for those to find out who ask
    }
  }
  return worth_it;
}

void Replay::check_inputs(Id op) {
  const Recipes& recipes = r_.course().recipes();
  const auto arguments = recipes.arguments_of(op);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind == Argument::Kind::constant) continue;
    for (std::uint32_t k = 0; k < arguments[i].count; ++k) {
      const Id value = recipes.references[arguments[i].first + k].value;
      if (value != no_value) check_unchanged(op, static_cast<int>(i), value);
    }
  }
}

void Replay::check_unchanged(Id op, int argument, Id value) {
  Values& values = r_.values();
  if (values.rebuildable(value)) return;
  const Standing standing = values.standing(value);
  const bool had = values.kept(value) || values.on_disk(value);
  const bool unwritten = standing < Standing::lost && had && !values.bindings().written_unseen(value);
  if (unwritten && values.is_there(value)) return;
  for (const SavedTensor* const saved : values.pending().of(value)) {
    saved->check_unmoved();  // an error of the user's, in LibTorch's words
  }
  const OperatorInfo& info = *r_.course().recipes().operators[op].info;
  throw ChangedInputError({info.name, op, argument, info.handle.schema().arguments()[argument].name(),
                           standing == Standing::lost_without_room, unwritten || values.is_away(value)});
}

// ---- running -------------------------------------------------------------------------------------------------------

void Replay::run() {
  std::sort(operators_.begin(), operators_.end());
  const double start = thread_microseconds();
  for (const Id op : operators_) run(op);
  const double microseconds = thread_microseconds() - start;
  const Arbiter lock;
  r_.rules().counters().replays(static_cast<std::int64_t>(operators_.size()), microseconds);
}

c10::Storage Replay::take(Id value) {
  Slot& slot = slots_[value];
  if (!slot.storage) slot.storage = copied_back(value);
  return slot.storage;
}

c10::Storage Replay::run_one(Id op, std::vector<std::pair<Id, c10::Storage>> inputs, Id output) {
  for (auto& [value, storage] : inputs) slots_[value].storage = std::move(storage);
  {
    const Arbiter lock;
    for (const Reference& reference : r_.course().recipes().references_of(op)) {
      if (reference.value != no_value) ++slots_[reference.value].uses;
    }
  }
  want(output);
  operators_.push_back(op);
  run();
  return take(output);
}

void Replay::run(Id op) {
  const ReplayCall call = [&] {
    const Arbiter lock;
    return ReplayCall(r_, op);
  }();
  written_.clear();
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) stack.push_back(argument(call, static_cast<int>(i)));
  try {
    call.run(stack);
  } catch (const draws::OffTheTape& error) {
    const Arbiter lock;
    const auto outputs = r_.course().recipes().outputs_of(op);
    const Id value = outputs.empty() ? no_value : outputs.front().value;
    r_.distrust(op);
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
    return input.view.of(written(static_cast<std::int16_t>(i), write, input.value));
  }
  return input.view.of(take(input.value));
}

// The storage that an operator writes into: never one that anybody else sees.
c10::Storage Replay::written(std::int16_t index, const Write& write, Id before) {
  c10::Storage storage;
  for (const Written& other : written_) {
    if (before != no_value && other.before == before) storage = other.storage;
  }
  if (!storage && before == no_value) storage = libtorch::new_storage(static_cast<std::size_t>(write.bytes));
  if (!storage) {
    (void)take(before);
    Slot& slot = slots_[before];
    storage = taken_over(slot, before);
    if (!storage) {
      storage = libtorch::new_storage(slot.storage.nbytes());
      std::memcpy(storage.mutable_data(), slot.storage.data(), slot.storage.nbytes());
    }
  }
  written_.push_back({index, storage, before});
  return storage;
}

// The storage of a value that nobody else needs; else empty. Ours is the only handle, and nobody can get another one:
// the program has none, and whoever would ask the recording for it needs the lock, and finds it unbound.
c10::Storage Replay::taken_over(Slot& slot, Id value) {
  const Arbiter lock;
  Values& values = r_.values();
  const bool last = slot.uses == 1 && !slot.wanted && values.rebuildable(value) && !values.pending().any_of(value) &&
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
  for (const Output& output : r_.course().recipes().outputs_of(op)) {
    if (r_.values().rebuildable(output.value)) take_output(output, results);
  }
}

void Replay::take_output(const Output& output, const torch::jit::Stack& results) {
  Values& values = r_.values();
  const auto slot = slots_.find(output.value);
  const bool wanted = slot != slots_.end() && slot->second.wanted;
  const bool used = slot != slots_.end() && (slot->second.uses > 0 || wanted);
  const bool kept = keeps(output.value, wanted);
  if (!used && !kept) return;
  if (keep_ == Keep::secret) {
    slot->second.storage = storage_of(output, results);
    return;
  }
  if (c10::Storage there = values.storage(output.value)) {
    if (kept && !values.kept(output.value)) {
      values.keep(output.value, std::move(there));
    } else {
      Arbiter::discard(std::move(there));
    }
    return;
  }
  c10::Storage storage = storage_of(output, results);
  if (!storage) return;
  values.bind(storage.unsafeGetStorageImpl(), output.value);
  if (kept) values.keep(output.value, storage);
  if (used) slot->second.storage = std::move(storage);
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
      Slot& slot = slots_[input.value];
      if (--slot.uses == 0 && !slot.wanted) slot.storage = c10::Storage();
    }
  }
}

c10::Storage Replay::copied_back(Id value) {
  const double start = thread_microseconds(), start_of_wait = wall_microseconds();
  Slot& slot = slots_[value];
  TORCH_INTERNAL_ASSERT(slot.copy, "[reprise] value ", value, " has no copy");
  const bool counted_on = slot.copy->fetched();
  c10::Storage storage = contents_of_copy(value);
  slot.copy.reset();
  const Arbiter lock;
  r_.values().bind(storage.unsafeGetStorageImpl(), value);
  if (counted_on || keeps(value, slot.wanted)) r_.values().keep(value, storage);
  if (r_.values().packed(value)) {
    r_.rules().counters().packing(thread_microseconds() - start);
  } else {
    r_.rules().counters().waiting(wall_microseconds() - start_of_wait);
  }
  return storage;
}

c10::Storage Replay::contents_of_copy(Id value) {
  try {
    return slots_[value].copy->contents();
  } catch (const DiskError& error) {
    const Arbiter lock;
    if (!r_.values().rebuildable(value)) fail_lost(error.what());
    r_.values().lose_copy(value);
    r_.rules().counters().diverged(std::string("a value is replayed because its copy is lost: ") + error.what());
    throw LostCopy();
  }
}

}  // namespace reprise::internal
