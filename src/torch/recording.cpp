#include "torch/recording.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "torch/executor.h"
#include "torch/fingerprint.h"
#include "torch/meter.h"
#include "torch/period.h"
#include "torch/recorder.h"
#include "torch/saved.h"
#include "torch/session_state.h"
#include "torch/thread_state.h"

namespace reprise::internal {
namespace {

std::uint32_t next_number() {
  static std::atomic<std::uint32_t> number{0};
  std::uint32_t n = ++number;
  return n == 0 ? ++number : n;  // zero is nobody's tag
}

void set_tag(meter::Header& header, std::uint32_t recording, Id value, bool tracked) {
  header.tag = {recording, value};
  if (tracked) {
    meter::track(header);
  } else {
    meter::untrack(header);
  }
}

// A handle that was only looked at. It may be the last one by now: what it frees may be anybody's, unless it is memory
// of the meter's.
void drop(c10::intrusive_ptr<c10::StorageImpl> storage) {
  if (!meter::header_of(*storage)) Arbiter::discard(c10::Storage(std::move(storage)));
}

constexpr Bytes smallest_packed = 4 << 10;

std::optional<PackedForm> form_of_contents(const c10::StorageImpl& storage, at::ScalarType dtype) {
  const int element = static_cast<int>(c10::elementSize(dtype));
  if (element > 8 || c10::isComplexType(dtype)) return std::nullopt;
  return packable({static_cast<const std::byte*>(storage.data()), storage.nbytes()}, element,
                  c10::isIntegralType(dtype, false));
}

}  // namespace

std::vector<Recording*>& recordings() {
  static auto& all = *new std::vector<Recording*>;
  return all;
}

// ---- packed copies -------------------------------------------------------------------------------------------------

std::shared_ptr<const PackedCopy> PackedCopy::of(const PackedForm& form, const c10::Storage& storage) {
  if (storage.nbytes() != form.plain_bytes()) return nullptr;
  const std::shared_ptr<PackedCopy> copy(new PackedCopy);
  const Bytes charged = meter::counted(form.bytes());
  if (!meter::charge(charged)) return nullptr;
  copy->charged_ = charged;
  copy->form_ = form;
  copy->data_ = std::make_unique_for_overwrite<std::byte[]>(form.bytes());
  const std::span plain{static_cast<const std::byte*>(storage.data()), storage.nbytes()};
  if (!reprise::pack(form, plain, {copy->data_.get(), form.bytes()})) return nullptr;
  return copy;
}

PackedCopy::~PackedCopy() {
  meter::discharge(charged_);
}

void PackedCopy::restore(const c10::Storage& storage) const {
  unpack(form_, {data_.get(), form_.bytes()}, {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()});
}

// ---- a recording's life --------------------------------------------------------------------------------------------

Recording::Recording(std::shared_ptr<SessionState> of, std::shared_ptr<Recipes> followed)
    : session(std::move(of)), number(next_number()), recipes(std::move(followed)), following(recipes != nullptr) {
  if (!following) recipes = std::make_shared<Recipes>();
  live.resize(recipes->values.size());
  tapes.resize(recipes->operators.size());
  const Arbiter lock;
  recordings().push_back(this);
}

Recording::~Recording() {
  const Arbiter lock;
  auto& all = recordings();
  all.erase(std::find(all.begin(), all.end(), this));
  for (LiveValue& value : live) {
    if (auto storage = value.storage.lock()) {
      meter::Header* const header = meter::header_of(*storage);
      if (header && header->tag.recording == number) set_tag(*header, 0, 0, false);
      drop(std::move(storage));
    }
  }
  Arbiter::discard_all(std::move(live));
}

void Recording::end() {
  sealed = true;
  for (Id v = 0; v < static_cast<Id>(live.size()); ++v) {
    if (!live[v].hooks.empty() || needed(v)) continue;
    let_go(v);
    live[v].packed.reset();
  }
}

bool Recording::end_backward() {
  in_backward = false;
  went_back = true;
  ++backwards_;
  return std::exchange(fresh_, 0) == 0;
}

// ---- values --------------------------------------------------------------------------------------------------------

const RecordedValue& Recording::info(Id value) const {
  const std::size_t known = recipes->values.size();
  const auto index = static_cast<std::size_t>(value);
  return index < known ? recipes->values[index] : extra_[index - known];
}

bool Recording::rebuildable(Id value) const {
  return info(value).maker != no_operator && !live[value].orphan;
}

Id Recording::new_value(Bytes bytes, Id maker) {
  const Id id = static_cast<Id>(live.size());
  (following || sealed ? extra_ : recipes->values).push_back({bytes, maker});
  live.emplace_back();
  return id;
}

void Recording::diverge(const std::string& why, std::optional<std::size_t> outputs) {
  if (next > 0 || expected) session->count_divergence(why);
  executor.reset();
  if (!following) return;
  const Id op = outputs ? current : next;
  auto mine = std::make_shared<Recipes>(recipes->before(op, outputs));
  const std::size_t values = mine->values.size();
  renumber_extra(recipes->values.size(), values);
  mine->values.insert(mine->values.end(), extra_.begin(), extra_.end());
  extra_.clear();
  for (auto& [index, constant] : changed_constants) {
    if (index < mine->constants.size()) mine->constants[index] = constant;
  }
  changed_constants.clear();
  recipes = std::move(mine);
  following = false;
  tapes.resize(recipes->operators.size());
  costs.resize(recipes->operators.size());
  if (period && lost_count) {
    period->record_anew = true;
  } else if (period && !unplannable) {  // what is not seen here was seen there
    seen = period->seen.before(moment);
    if (seen.released.size() > values) seen.released.resize(values);
    if (seen.forms.size() > values) seen.forms.resize(values);
    for (Id v = 0; v < static_cast<Id>(std::min(live.size(), seen.released.size())); ++v) {
      if (live[v].met && seen.released[v] < 0 && rebuildable(v)) seen.watched.push_back(v);
    }
    seen.released.resize(live.size(), -1);
    observing = measuring = measuring_other = true;
    const std::size_t measured = other.size();
    other.resize(static_cast<std::size_t>(moment));
    for (std::size_t m = measured; m < other.size(); ++m) other[m] = period->other[m];
    watch_nodes(true);
  }
  period.reset();
  for (LiveValue& value : live) value.dropped = false;
}

// Values that the recipes do not have move from where those of one list end to where those of another end.
void Recording::renumber_extra(std::size_t from, std::size_t to) {
  if (from == to) return;
  const auto renumbered = [&](Id value) {
    return value < static_cast<Id>(from) ? value : static_cast<Id>(static_cast<std::size_t>(value) - from + to);
  };
  for (std::size_t i = 0; i < extra_.size(); ++i) {
    LiveValue& state = live[to + i] = std::move(live[from + i]);
    for (SavedHook* const hook : state.hooks) hook->value = static_cast<Id>(to + i);
    auto storage = state.storage.lock();
    if (!storage) continue;
    meter::Header* const header = meter::header_of(*storage);
    if (header && header->tag.recording == number) header->tag.value = renumbered(header->tag.value);
    drop(std::move(storage));
  }
  for (auto& [storage, value] : elsewhere_) value = renumbered(value);
  for (CurrentWrite& write : current_writes) write.before = renumbered(write.before);
  live.resize(to + extra_.size());
  needed_known_ = false;
}

void Recording::change_to(const std::shared_ptr<Period>& another) {
  period = another;
  recipes = another->recipes;
  live.resize(recipes->values.size());
  tapes.resize(recipes->operators.size());
  costs = another->costs;
  for (LiveValue& value : live) value.dropped = false;
  executor = session->executor_for(*another);
}

bool Recording::held_by_program(Id value) const {
  const LiveValue& state = live[value];
  auto storage = state.storage.lock();
  if (!storage) return false;
  if (find(storage.get()) != value) {
    drop(std::move(storage));
    return false;
  }
  const std::size_t ours = 1 + (state.kept && state.kept.unsafeGetStorageImpl() == storage.get() ? 1 : 0);
  const bool held = storage.use_count() > ours;
  drop(std::move(storage));
  return held;
}

Id Recording::find(c10::StorageImpl* storage) const {
  if (const meter::Header* const header = meter::header_of(*storage)) {
    if (header->tag.recording == number) return header->tag.value;
  }
  if (elsewhere_.empty()) return no_value;
  const auto found = elsewhere_.find(storage);
  if (found == elsewhere_.end()) return no_value;
  // While the value refers to the storage, no other one can have its address.
  return live[found->second].storage._unsafe_get_target() == storage ? found->second : no_value;
}

Id Recording::look_up(const at::Tensor& tensor) {
  c10::StorageImpl* const storage = libtorch::storage_of(tensor);
  const Id value = find(storage);
  if (value == no_value) return add_from_outside(tensor);
  if (!written_unseen(value)) return value;
  const Id present = add_from_outside(tensor);
  follow_writes(value, present);
  return present;
}

bool Recording::written_unseen(Id value) const {
  const LiveValue& state = live[value];
  return state.version.enabled() && state.version.current_version() != state.expected_version;
}

Id Recording::add_from_outside(const at::Tensor& tensor) {
  const libtorch::Version& version = libtorch::version_of(tensor);
  return add_from_outside(libtorch::storage_of(tensor), version, version.enabled() ? version.current_version() : 0);
}

Id Recording::add_from_outside(c10::StorageImpl* storage, const libtorch::Version& version,
                               std::uint32_t expected_version) {
  const meter::Header* const header = meter::header_of(*storage);
  const Id value = new_value(header ? header->bytes : static_cast<Bytes>(storage->nbytes()), no_operator);
  adopt_from_outside(value, storage);
  live[value].version = version;
  live[value].expected_version = expected_version;
  return value;
}

void Recording::adopt_from_outside(Id value, const at::Tensor& tensor) {
  adopt_from_outside(value, libtorch::storage_of(tensor));
  remember_version(value, tensor);
}

void Recording::adopt_from_outside(Id value, c10::StorageImpl* storage) {
  if (!meter::header_of(*storage)) session->met_unmetered(static_cast<Bytes>(storage->nbytes()), storage);
  bind(storage, value);
  if (keep_outside) live[value].kept = libtorch::share(storage);
}

Id Recording::add_made(c10::StorageImpl* storage, Id op) {
  const meter::Header* const header = meter::header_of(*storage);
  const Id value = new_value(header ? header->bytes : static_cast<Bytes>(storage->nbytes()), op);
  bind(storage, value);
  return value;
}

void Recording::bind(c10::StorageImpl* storage, Id value) {
  const Id before = find(storage);
  if (before != no_value && before != value) unbind(storage, before);
  LiveValue& state = live[value];
  if (c10::StorageImpl* const last = state.storage._unsafe_get_target(); last != storage) {
    if (const auto place = elsewhere_.find(last); place != elsewhere_.end() && place->second == value) {
      elsewhere_.erase(place);  // another storage may get its address
    }
  }
  state.storage = libtorch::share(storage).getWeakStorageImpl();
  state.met = true;
  meter::Header* const header = meter::header_of(*storage);
  if (!header) {
    elsewhere_[storage] = value;
    return;
  }
  if (header->tag.recording != 0 && header->tag.recording != number) {
    for (Recording* const theirs : recordings()) {  // it still has to find it
      if (theirs->number == header->tag.recording) theirs->elsewhere_[storage] = header->tag.value;
    }
  }
  set_tag(*header, number, value, info(value).maker != no_operator);
}

void Recording::unbind(c10::StorageImpl* storage, Id value) {
  if (!live[value].copied) let_go(value);
  meter::Header* const header = meter::header_of(*storage);
  if (header && header->tag.recording == number) {
    set_tag(*header, 0, 0, false);
  } else {
    elsewhere_.erase(storage);
  }
}

void Recording::remember_version(Id value, const at::Tensor& tensor) {
  const libtorch::Version& version = libtorch::version_of(tensor);
  if (!version.enabled()) return;
  live[value].version = version;
  live[value].expected_version = version.current_version();
}

c10::Storage Recording::anywhere(Id value) const {
  const LiveValue& state = live[value];
  if (state.kept) return state.kept;
  auto storage = state.storage.lock();
  if (!storage) return {};
  if (find(storage.get()) == value && !written_unseen(value)) return c10::Storage(std::move(storage));
  drop(std::move(storage));
  return {};
}

c10::Storage Recording::storage(Id value) const {
  if (session->options.forget_everything && rebuildable(value)) return live[value].kept;
  return anywhere(value);
}

bool Recording::resident(Id value) const {
  if (live[value].kept) return true;
  c10::Storage found = storage(value);
  const bool there = static_cast<bool>(found);
  Arbiter::discard(std::move(found));
  return there;
}

void Recording::let_go(Id value) {
  Arbiter::discard(std::exchange(live[value].kept, c10::Storage()));
}

void Recording::keep(Id value, c10::Storage storage) {
  LiveValue& state = live[value];
  let_go(value);
  state.kept = std::move(storage);
  state.forgotten = false;
  if (keep_outside && rebuildable(value) && choice_of(value) != Choice::keep) {
    victims.add(value, cost_of(info(value).maker), info(value).bytes, state.saved_at);
  }
}

Choice Recording::choice_of(Id value) const {
  const Id maker = info(value).maker;
  return maker == no_operator ? Choice::decide : recipes->operators[maker].choice;
}

float Recording::cost_of(Id op) const {
  return static_cast<std::size_t>(op) < costs.size() ? costs[op] : 0;
}

void Recording::release(Id value) {
  if (rebuildable(value)) let_go(value);
  live[value].packed.reset();
}

void Recording::forget(Id value) {
  LiveValue& state = live[value];
  if (!state.hooks.empty() && state.kept) {
    if (session->verifies(*recipes, value)) take_fingerprints(value, state.kept);
    state.forgotten = true;
    session->count_forgotten(info(value).bytes);
  }
  let_go(value);
}

void Recording::take_fingerprints(Id value, const c10::Storage& storage) {
  const SavedHook* last = nullptr;
  for (SavedHook* const hook : live[value].hooks) {
    if (!hook->fingerprint.empty() || !hook->unmoved()) continue;
    hook->fingerprint = last && last->view == hook->view ? last->fingerprint : fingerprint(storage, hook->view);
    last = hook;
  }
}

bool Recording::pack(Id value, const PackedForm& form) {
  LiveValue& state = live[value];
  if (state.packed) {
    let_go(value);
    return true;
  }
  if (!state.kept) return false;
  const double start = thread_microseconds();
  auto copy = PackedCopy::of(form, state.kept);
  session->count_packing(thread_microseconds() - start);
  if (!copy) return false;
  session->count_packed(info(value).bytes, copy->bytes());
  state.packed = std::move(copy);
  return true;
}

// ---- saved tensors -------------------------------------------------------------------------------------------------

void Recording::attach(SavedHook& hook, Id value, c10::StorageImpl* storage) {
  LiveValue& state = live[value];
  hook.value = value;
  hook.attached_in = backwards_;
  state.hooks.push_back(&hook);
  state.saved_at = now;
  ++pending_;
  ++fresh_;
  needed_known_ = false;
  if (!rebuildable(value)) {
    if (!state.kept) state.kept = libtorch::share(storage);
    return;
  }
  ThreadState& here = this_thread();
  const Choice choice = choice_of(value);
  const bool in_region = here.forgetting > 0 && !executor && choice != Choice::keep;
  if (in_region && state.hooks.size() == 1) here.forgotten += info(value).bytes;
  if (session->options.forget_everything || in_region || (choice == Choice::forget && keep_outside)) {
    state.forgotten = true;
    if (session->verifies(*recipes, value)) take_fingerprints(value, libtorch::share(storage));
    return;
  }
  if (observing && session->options.pack) observe_form(value, *storage, hook.view.dtype);
  if (state.dropped) {
    state.forgotten = true;
    if (session->verifies(*recipes, value)) take_fingerprints(value, libtorch::share(storage));
  } else if (!state.kept && !state.packed) {
    keep(value, libtorch::share(storage));
    if (choice == Choice::pack) pack_at_once(value, *storage, hook.view.dtype);
  }
}

void Recording::pack_at_once(Id value, const c10::StorageImpl& storage, at::ScalarType dtype) {
  if (!session->options.pack || !keep_outside) return;
  if (const auto form = form_of_contents(storage, dtype); form && pack(value, *form)) let_go(value);
}

void Recording::observe_form(Id value, const c10::StorageImpl& storage, at::ScalarType dtype) {
  auto& forms = seen.forms;
  if (forms.size() <= static_cast<std::size_t>(value)) forms.resize(static_cast<std::size_t>(value) + 1);
  if (forms[value] || info(value).bytes < smallest_packed) return;
  forms[value] = form_of_contents(storage, dtype);
  if (forms[value]) reserve_for_packing(meter::counted(forms[value]->bytes()));
}

void Recording::detach(SavedHook& hook) {
  LiveValue& state = live[hook.value];
  const auto place = std::find(state.hooks.begin(), state.hooks.end(), &hook);
  *place = state.hooks.back();
  state.hooks.pop_back();
  needed_known_ = false;
  if (hook.attached_in == backwards_) --fresh_;
  if (--pending_ == 0) drained_ = true;
  if (!state.hooks.empty()) return;
  state.forgotten = false;
  if (executor && executor->keeps(hook.value)) return;
  release(hook.value);
  // A value from outside that nobody may need for a recipe was only kept for this saved tensor.
  if (!keep_outside && !rebuildable(hook.value)) let_go(hook.value);
}

void Recording::follow_writes(Id from, Id to) {
  std::vector<SavedHook*> moving;
  for (SavedHook* const hook : live[from].hooks) {
    if (hook->unmoved()) moving.push_back(hook);
  }
  if (moving.empty()) return;
  auto storage = live[to].storage.lock();
  if (!storage) return;
  for (SavedHook* const hook : moving) {
    hook->fingerprint.clear();
    auto& hooks = live[from].hooks;
    hooks.erase(std::find(hooks.begin(), hooks.end(), hook));
    --pending_;
    if (hook->attached_in == backwards_) --fresh_;
    attach(*hook, to, storage.get());
  }
  drop(std::move(storage));
}

bool Recording::needed(Id value) {
  if (!needed_known_) {
    needed_.assign(live.size(), false);
    std::vector<Id> open;
    const auto visit = [&](Id v) {
      if (needed_[v]) return;
      needed_[v] = true;
      open.push_back(v);
    };
    for (Id v = 0; v < static_cast<Id>(live.size()); ++v) {
      if (!live[v].hooks.empty() && rebuildable(v)) visit(v);
    }
    while (!open.empty()) {
      const Id v = open.back();
      open.pop_back();
      if (!rebuildable(v)) continue;
      for (const Reference& reference : recipes->references_of(info(v).maker)) {
        if (reference.value != no_value) visit(reference.value);
      }
    }
    needed_known_ = true;
  }
  return static_cast<std::size_t>(value) < needed_.size() && needed_[value];
}

bool Recording::would_copy(Id value) {
  const LiveValue& state = live[value];
  return !rebuildable(value) && state.uses > 0 && state.kept && !state.copied && needed(value);
}

void Recording::replace(Id value, c10::Storage copy) {
  let_go(value);
  LiveValue& state = live[value];
  state.kept = std::move(copy);
  state.copied = true;
  state.version = libtorch::Version();
}

void Recording::before_write(Id value) {
  if (!rebuildable(value) && live[value].uses > 0 && !live[value].copied) orphan_dependents(value);
}

void Recording::after_write(c10::StorageImpl* storage, const libtorch::Version& version) {
  const Id before = find(storage);
  if (before == no_value) return;
  const auto& hooks = live[before].hooks;
  if (std::any_of(hooks.begin(), hooks.end(), [](const SavedHook* hook) { return hook->unmoved(); })) {
    follow_writes(before, add_from_outside(storage, version, version.enabled() ? version.current_version() : 0));
  } else {
    unbind(storage, before);
  }
}

void Recording::orphan_dependents(Id value) {
  std::vector<bool> depends(live.size(), false);
  depends[value] = true;
  live[value].lost = true;
  for (Id op = 0; op < next; ++op) {
    const auto references = recipes->references_of(op);
    if (std::none_of(references.begin(), references.end(),
                     [&](const Reference& r) { return r.value != no_value && depends[r.value]; })) {
      continue;
    }
    for (const Output& output : recipes->outputs_of(op)) {
      depends[output.value] = true;
      c10::Storage contents = anywhere(output.value);
      if (!contents) continue;  // nobody asks for it any more, but others are made of it
      live[output.value].kept = std::move(contents);
      live[output.value].orphan = true;
    }
  }
}

}  // namespace reprise::internal
