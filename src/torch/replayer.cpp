#include "torch/replayer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "torch/draws.h"
#include "torch/meter.h"
#include "torch/saved.h"
#include "torch/session_state.h"

namespace reprise::internal {
namespace {

// Operators run as they did below autograd and autocast, and are not recorded.
class BelowAutograd {
 public:
  BelowAutograd()
      : autograd_(c10::autograd_dispatch_keyset_with_ADInplaceOrView),
        autocast_(c10::autocast_dispatch_keyset),
        writes_(libtorch::key_of_writes),
        recording_(false) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard autograd_, autocast_, writes_;
  at::RecordFunctionGuard recording_;
};

// The default type as it was. It belongs to the whole process, so it is only touched if it was another one and the
// results may depend on it.
class DefaultTypeAsRecorded {
 public:
  explicit DefaultTypeAsRecorded(std::optional<at::ScalarType> type)
      : before_(libtorch::default_type()), changed_(type && *type != before_) {
    if (changed_) libtorch::default_type(*type);
  }
  ~DefaultTypeAsRecorded() {
    if (changed_) libtorch::default_type(before_);
  }
  DefaultTypeAsRecorded(const DefaultTypeAsRecorded&) = delete;
  DefaultTypeAsRecorded& operator=(const DefaultTypeAsRecorded&) = delete;

 private:
  const at::ScalarType before_;
  const bool changed_;
};

// What a replay allocates is in the plan, or caused by the lack of one: it is not among the other bytes.
class NotAmongOtherBytes {
 public:
  NotAmongOtherBytes() : before_(meter::take_other_peak()) {}
  ~NotAmongOtherBytes() {
    (void)meter::take_other_peak();
    meter::raise_other_peak(before_);
  }
  NotAmongOtherBytes(const NotAmongOtherBytes&) = delete;
  NotAmongOtherBytes& operator=(const NotAmongOtherBytes&) = delete;

 private:
  const Bytes before_;
};

// A recipe, ready to be run: a copy, because the recorder of another thread may add recipes meanwhile.
struct Call {
  struct Input {
    Id value = no_value;
    bool defined = false;
    View view;
  };
  struct Argument {
    internal::Argument::Kind kind = internal::Argument::Kind::constant;
    c10::IValue constant;
    c10::SmallVector<Input, 1> inputs;
  };

  const OperatorInfo* info = nullptr;
  bool grad_mode = true;
  std::optional<at::ScalarType> default_type;  // if the results may depend on it
  c10::SmallVector<Argument, 8> arguments;
  c10::SmallVector<Write, 2> writes;
  draws::Tape tape;

  // Under the lock.
  Call(const Recording& r, Id op) {
    const Recipes& recipes = *r.recipes;
    const Recipe& recipe = recipes.operators[op];
    info = recipe.info;
    grad_mode = recipe.grad_mode;
    tape = r.tapes[op];
    bool has_fractions = false;
    const auto all_writes = recipes.writes_of(op);
    writes.append(all_writes.begin(), all_writes.end());
    for (const internal::Argument& argument : recipes.arguments_of(op)) {
      Argument& own = arguments.emplace_back();
      own.kind = argument.kind;
      if (argument.kind == internal::Argument::Kind::constant) {
        const auto changed = r.changed_constants.find(argument.first);
        own.constant = changed == r.changed_constants.end() ? recipes.constants[argument.first] : changed->second;
        if (own.constant.isGenerator()) own.constant = c10::IValue();  // the tape plays to whichever it asks for
      } else if (argument.kind != internal::Argument::Kind::unknown) {
        for (std::uint32_t k = 0; k < argument.count; ++k) {
          const Reference& reference = recipes.references[argument.first + k];
          own.inputs.push_back({reference.value, reference.defined, recipes.view(reference.geometry)});
          has_fractions |= reference.defined && !c10::isIntegralType(reference.geometry.dtype, true);
        }
      }
    }
    if (!has_fractions) default_type = recipe.default_type;
  }
};

class Replay {
 public:
  enum class Keep { what_is_awaited, outputs, nothing, secret };  // secret: what is made belongs to no value, either

  // From the leaves: nothing is taken from where it is that could be rebuilt.
  Replay(Recording& recording, Keep keep, bool from_leaves = false)
      : r_(recording), keep_(keep), from_leaves_(from_leaves) {}

  // Under the lock: what has to be run so that this value is there.
  void collect(Id value) {
    if (touch(value)) open_.push_back(value);
    collect_open();
  }
  // Under the lock: the packed copy of this value, which nothing else has.
  void collect_packed(Id value) { pin(value, slots_[value]); }
  // Under the lock: this operator in any case.
  void collect_operator(Id op) {
    add_operator(op);
    collect_open();
  }

  // Not under the lock.
  void run() {
    std::sort(operators_.begin(), operators_.end());
    const BelowAutograd below;
    const double start = thread_microseconds();
    for (const Id op : operators_) run(op);
    r_.session->count_replays(static_cast<std::int64_t>(operators_.size()), thread_microseconds() - start);
  }

  [[nodiscard]] c10::Storage take(Id value) {
    Slot& slot = slots_[value];
    if (!slot.storage) slot.storage = unpacked(value);
    return slot.storage;
  }

  void want(Id value) { slots_[value].wanted = true; }

  // One operator, on inputs that the caller has brought.
  c10::Storage run_one(Id op, std::span<const std::pair<Id, c10::Storage>> inputs, Id output) {
    for (const auto& [value, storage] : inputs) slots_[value].storage = storage;
    {
      const Arbiter lock;
      for (const Reference& reference : r_.recipes->references_of(op)) {
        if (reference.value != no_value) ++slots_[reference.value].uses;
      }
    }
    want(output);
    operators_.push_back(op);
    run();
    return take(output);
  }

 private:
  struct Slot {
    c10::Storage storage;                      // pinned, or made here
    std::shared_ptr<const PackedCopy> packed;  // pinned: what it is to be unpacked from, if it has to be
    int uses = 0;                              // by operators to come
    bool wanted = false;                       // by whoever asked
  };

  // ---- collecting ----
  bool touch(Id value) {
    const auto [place, is_new] = slots_.try_emplace(value);
    return is_new;
  }

  void pin(Id value, Slot& slot) {
    slot.storage = r_.storage(value);
    if (!slot.storage) slot.packed = r_.live[value].packed;
  }

  void collect_open() {
    while (!open_.empty()) {
      const Id value = open_.back();
      open_.pop_back();
      Slot& slot = slots_[value];
      if (!from_leaves_ || !r_.rebuildable(value)) pin(value, slot);
      if (slot.storage || slot.packed) continue;
      const Id op = r_.info(value).maker;
      TORCH_INTERNAL_ASSERT(op != no_operator && r_.rebuildable(value), "[reprise] value ", value,
                            " is neither resident nor has it a recipe");
      add_operator(op);
    }
  }

  void add_operator(Id op) {
    if (collected_.empty()) collected_.resize(r_.recipes->operators.size());
    if (collected_[op]) return;
    collected_[op] = true;
    operators_.push_back(op);
    const auto arguments = r_.recipes->arguments_of(op);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind == Argument::Kind::constant) continue;
      for (std::uint32_t k = 0; k < arguments[i].count; ++k) {
        const Id value = r_.recipes->references[arguments[i].first + k].value;
        if (value == no_value) continue;
        check_unchanged(op, static_cast<int>(i), value);
        if (touch(value)) open_.push_back(value);
        ++slots_[value].uses;
      }
    }
  }

  void check_unchanged(Id op, int argument, Id value) const {
    if (r_.rebuildable(value)) return;
    const LiveValue& state = r_.live[value];
    if (!state.lost && state.kept && !r_.written_unseen(value)) return;
    for (const SavedHook* const hook : state.hooks)
      hook->check_unmoved();  // an error of the user's, in LibTorch's words
    const OperatorInfo& info = *r_.recipes->operators[op].info;
    throw ChangedInputError(
        {info.name, op, argument, info.handle.schema().arguments()[argument].name(), state.no_room});
  }

  // ---- running ----
  void run(Id op) {
    const Call call = [&] {
      const Arbiter lock;
      return Call(r_, op);
    }();
    written_.clear();
    torch::jit::Stack stack;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) stack.push_back(argument(call, static_cast<int>(i)));
    try {
      const at::AutoGradMode mode(call.grad_mode);
      const DefaultTypeAsRecorded type(call.default_type);
      const draws::Player random(call.tape);
      Arbiter::expect_free("an operator is replayed");
      call.info->handle.callBoxed(&stack);
      random.finish();
    } catch (const draws::OffTheTape& error) {
      const Arbiter lock;
      const auto outputs = r_.recipes->outputs_of(op);
      const Id value = outputs.empty() ? no_value : outputs.front().value;
      r_.session->distrust(r_, op);
      throw MismatchError({call.info->name, op, value, 0, 0, error.what()});
    }
    take_outputs(op, stack);
    free_inputs(call);
  }

  c10::IValue argument(const Call& call, int index) {
    const Call::Argument& argument = call.arguments[index];
    switch (argument.kind) {
      case Argument::Kind::constant: return argument.constant;
      case Argument::Kind::unknown: return {};
      case Argument::Kind::tensor: return tensor(call, index, 0);
      case Argument::Kind::tensors: {
        c10::List<at::Tensor> list;
        for (std::size_t k = 0; k < argument.inputs.size(); ++k)
          list.push_back(tensor(call, index, static_cast<int>(k)));
        return list;
      }
      case Argument::Kind::optional_tensors: {
        c10::List<std::optional<at::Tensor>> list;
        for (std::size_t k = 0; k < argument.inputs.size(); ++k) {
          const at::Tensor one = tensor(call, index, static_cast<int>(k));
          list.push_back(one.defined() ? std::optional(one) : std::nullopt);
        }
        return list;
      }
    }
    return {};
  }

  at::Tensor tensor(const Call& call, int index, int element) {
    const Call::Input& input = call.arguments[index].inputs[element];
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
  c10::Storage written(std::int16_t index, const Write& write, Id before) {
    for (const auto& [other, storage, value] : written_) {
      if (before != no_value && value == before) return written_.emplace_back(index, storage, before), storage;
    }
    c10::Storage storage;
    if (before == no_value) {
      storage = libtorch::new_storage(static_cast<std::size_t>(write.bytes));
    } else {
      (void)take(before);
      Slot& slot = slots_[before];
      storage = taken_over(slot, before);
      if (!storage) {
        storage = libtorch::new_storage(slot.storage.nbytes());
        std::memcpy(storage.mutable_data(), slot.storage.data(), slot.storage.nbytes());
      }
    }
    written_.emplace_back(index, storage, before);
    return storage;
  }

  // The storage of a value that nobody else needs; else empty.
  c10::Storage taken_over(Slot& slot, Id value) {
    const Arbiter lock;
    const bool last = slot.uses == 1 && !slot.wanted && r_.rebuildable(value) && r_.live[value].hooks.empty() &&
                      !r_.live[value].kept && slot.storage.use_count() == 1;
    if (!last) return {};
    r_.unbind(slot.storage.unsafeGetStorageImpl(), value);
    return std::exchange(slot.storage, c10::Storage());
  }

  void take_outputs(Id op, const torch::jit::Stack& results) {
    const Arbiter lock;
    for (const Output& output : r_.recipes->outputs_of(op)) {
      if (!r_.rebuildable(output.value)) continue;
      LiveValue& state = r_.live[output.value];
      const auto slot = slots_.find(output.value);
      const bool used = slot != slots_.end() && (slot->second.uses > 0 || slot->second.wanted);
      const bool kept = keep_ == Keep::outputs
                            ? used && slot->second.wanted
                            : keep_ == Keep::what_is_awaited && !state.hooks.empty() && !state.dropped;
      if (!used && !kept) continue;
      if (keep_ == Keep::secret) {
        slot->second.storage = storage_of(output, results);
        continue;
      }
      if (c10::Storage there = r_.storage(output.value)) {
        if (kept && !state.kept) {
          r_.keep(output.value, std::move(there));
        } else {
          Arbiter::discard(std::move(there));
        }
        continue;
      }
      c10::Storage storage = storage_of(output, results);
      if (!storage) continue;
      r_.bind(storage.unsafeGetStorageImpl(), output.value);
      if (kept) r_.keep(output.value, storage);
      if (used) slot->second.storage = std::move(storage);
    }
  }

  c10::Storage storage_of(const Output& output, const torch::jit::Stack& results) const {
    if (output.write >= 0) {
      for (const auto& [index, storage, value] : written_) {
        if (index == output.write) return storage;
      }
      return {};
    }
    const c10::IValue& result = results[output.result];
    const at::Tensor tensor = result.isTensor() ? result.toTensor() : result.toListRef()[output.element].toTensor();
    return tensor.defined() ? tensor.storage() : c10::Storage();
  }

  void free_inputs(const Call& call) {
    written_.clear();
    for (const Call::Argument& argument : call.arguments) {
      for (const Call::Input& input : argument.inputs) {
        if (input.value == no_value) continue;
        Slot& slot = slots_[input.value];
        if (--slot.uses == 0 && !slot.wanted) slot.storage = c10::Storage();
      }
    }
  }

  c10::Storage unpacked(Id value) {
    const double start = thread_microseconds();
    Slot& slot = slots_[value];
    TORCH_INTERNAL_ASSERT(slot.packed, "[reprise] value ", value, " has no packed copy");
    c10::Storage storage = libtorch::new_storage(slot.packed->plain_bytes());
    slot.packed->restore(storage);
    slot.packed.reset();
    {
      const Arbiter lock;
      const LiveValue& state = r_.live[value];
      r_.bind(storage.unsafeGetStorageImpl(), value);
      if ((keep_ == Keep::what_is_awaited && !state.hooks.empty() && !state.dropped) ||
          (keep_ == Keep::outputs && slot.wanted)) {
        r_.keep(value, storage);
      }
    }
    r_.session->count_packing(thread_microseconds() - start);
    return storage;
  }

  Recording& r_;
  const Keep keep_;
  const bool from_leaves_;
  std::vector<Id> operators_, open_;
  std::vector<bool> collected_;  // by operator
  std::unordered_map<Id, Slot> slots_;
  std::vector<std::tuple<std::int16_t, c10::Storage, Id>> written_;
};

// The last resort when a replay does not fit: one value at a time, with nothing pinned but the inputs of the operators
// that wait for theirs, and nothing kept. What two operators need is made twice, so the work is limited.
class FrugalReplay {
 public:
  explicit FrugalReplay(Recording& recording, Replay::Keep keep = Replay::Keep::nothing, bool from_leaves = false)
      : r_(recording), keep_(keep), from_leaves_(from_leaves), most_runs_([&] {
          const Arbiter lock;
          return 8 * static_cast<int>(recording.recipes->operators.size()) + 64;
        }()) {}

  // Nothing: it would be too much work.
  std::optional<c10::Storage> rebuild(Id value) {
    push(value);
    c10::Storage made;
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (made) frame.inputs[frame.next++].second = std::move(made);
      made = c10::Storage();
      if (frame.next < frame.inputs.size()) {
        const Id input = frame.inputs[frame.next].first;
        c10::Storage& storage = frame.inputs[frame.next].second;
        storage = there(input);
        if (storage) {
          ++frame.next;
        } else {
          push(input);
        }
        continue;
      }
      if (++runs_ > most_runs_) return std::nullopt;
      const Frame ready = std::move(frame);
      frames_.pop_back();
      made = Replay(r_, keep_).run_one(ready.op, ready.inputs, ready.value);
    }
    return made;
  }

 private:
  struct Frame {
    Id value, op;
    std::vector<std::pair<Id, c10::Storage>> inputs;
    std::size_t next = 0;
  };

  void push(Id value) {
    const Arbiter lock;
    Frame frame{value, r_.info(value).maker, {}};
    for (const Reference& reference : r_.recipes->references_of(frame.op)) {
      const auto is_it = [&](const auto& input) { return input.first == reference.value; };
      if (reference.value == no_value || std::any_of(frame.inputs.begin(), frame.inputs.end(), is_it)) continue;
      frame.inputs.emplace_back(reference.value, c10::Storage());
    }
    frames_.push_back(std::move(frame));
  }

  c10::Storage there(Id value) {
    Replay replay(r_, Replay::Keep::nothing);
    {
      const Arbiter lock;
      if (from_leaves_ && r_.rebuildable(value)) return {};
      if (c10::Storage storage = r_.storage(value)) return storage;
      if (!r_.live[value].packed) return {};
      replay.collect_packed(value);
    }
    return replay.take(value);
  }

  Recording& r_;
  const Replay::Keep keep_;
  const bool from_leaves_;
  const int most_runs_;
  int runs_ = 0;
  std::vector<Frame> frames_;
};

c10::Storage rebuild_at_once(Recording& recording, Id value) {
  Replay replay(recording, Replay::Keep::what_is_awaited);
  {
    const Arbiter lock;
    replay.collect(value);
    replay.want(value);
  }
  replay.run();
  return replay.take(value);
}

}  // namespace

c10::Storage rebuild(Recording& recording, Id value) {
  const NotAmongOtherBytes aside;
  try {
    return rebuild_at_once(recording, value);
  } catch (const BudgetError&) {
    if (auto storage = FrugalReplay(recording).rebuild(value)) return *storage;
    throw;
  }
}

c10::Storage rebuild_anew(Recording& recording, Id value, Anew anew) {
  const NotAmongOtherBytes aside;
  const bool from_leaves = anew == Anew::everything;
  try {
    Replay replay(recording, Replay::Keep::secret, from_leaves);
    {
      const Arbiter lock;
      replay.want(value);
      replay.collect_operator(recording.info(value).maker);
    }
    replay.run();
    return replay.take(value);
  } catch (const BudgetError&) {
    if (auto storage = FrugalReplay(recording, Replay::Keep::secret, from_leaves).rebuild(value)) return *storage;
    throw;
  }
}

void replay_for_plan(Recording& recording, std::span<const Id> operators, std::span<const Id> outputs) {
  const NotAmongOtherBytes aside;
  Replay replay(recording, Replay::Keep::outputs);
  {
    const Arbiter lock;
    for (const Id value : outputs) {
      recording.live[value].dropped = false;
      replay.want(value);
    }
    for (const Id op : operators) replay.collect_operator(op);
  }
  replay.run();
}

void unpack_for_plan(Recording& recording, Id value) {
  const NotAmongOtherBytes aside;
  Replay replay(recording, Replay::Keep::outputs);
  {
    const Arbiter lock;
    recording.live[value].dropped = false;
    if (recording.resident(value) || !recording.live[value].packed) return;
    replay.collect_packed(value);
    replay.want(value);
  }
  (void)replay.take(value);
}

}  // namespace reprise::internal
