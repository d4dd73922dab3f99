#include "torch/values/recording.h"

#include <algorithm>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/counted_device.h"
#include "torch/memory/meter.h"
#include "torch/values/open_steps.h"
#include "torch/values/recordings.h"
#include "torch/values/regions.h"

namespace reprise::internal {
namespace {

constexpr Bytes smallest_packed = 4 << 10;

}  // namespace

// ---- a recording's life --------------------------------------------------------------------------------------------

Recording::Recording(std::shared_ptr<RecordingContext> context, std::shared_ptr<Recipes> followed)
    : context_(std::move(context)),
      cursor_(std::move(followed)),
      journal_(context_->device().meter()),
      values_(cursor_, journal_, *context_, context_->may_evict()),
      recomputing_before_(context_->counters().recomputing()) {
  const Arbiter lock;
  values_.bindings().number(Recordings::of_process().add(*this, values_.bindings()));
}

Recording::Recording(std::shared_ptr<RecordingContext> context, std::shared_ptr<RecordedPass> followed, bool expected)
    : Recording(std::move(context), followed ? followed->recipes : nullptr) {
  pass_ = std::move(followed);
  if (!pass_) {
    journal_.observe();
    if (const auto device = context_->accelerator()) journal_.measure_late(*device);
    return;
  }
  expected_ = expected;
  take_plan();
  const bool may_be_planned = !pass_->costs_settled();  // for this budget, or by who asks for the trace
  journal_.measure(pass_->costs, pass_->wants_costs(), plan_.has_value() || may_be_planned);
  if (const auto device = context_->accelerator(); device && journal_.measuring()) journal_.measure_late(*device);
}

Recording::~Recording() {
  const Arbiter lock;
  Recordings::of_process().remove(*this);
  values_.clear();
}

void Recording::end() {
  cursor_.seal();
  values_.end();
}

bool Recording::end_backward() {
  in_backward_ = false;
  went_back_ = true;
  return values_.pending().end_backward();
}

// ---- the pass ----------------------------------------------------------------------------------------------------

void Recording::change_to(const std::shared_ptr<RecordedPass>& another) {
  pass_ = another;
  cursor_.change_to(another->recipes);
  values_.resize();
  journal_.costs_of(another->costs);
  take_plan();
}

// A plan that asks for nothing is followed to the letter now and then: the other bytes are measured, and if they have
// grown there is another plan.
void Recording::take_plan() {
  constexpr int measured_every = 16;
  plan_ = PlanCursor::of(*pass_, *context_);
  const bool measured = pass_->given || pass_->met % measured_every == 0;
  unmonitored_ = plan_ && !measured && plan_->is_noop(context_->budget());
  if (unmonitored_) plan_.reset();
}

std::shared_ptr<RecordedPass> Recording::leave_pass() {
  return std::exchange(pass_, nullptr);
}

std::optional<PackedForm> Recording::form_of(Id value) const {
  const auto& forms = cursor_.following() && pass_ ? pass_->seen.forms : journal_.seen().forms;
  if (!context_->packs() || static_cast<std::size_t>(value) >= forms.size()) return std::nullopt;
  return forms[value];
}

void Recording::mark_inexact(Id op) {
  const OperatorInfo& info = *cursor_.recipes().operators[op].info;
  context_->mark_inexact(info, op);
  cursor_.mark_not_replayable(op, context_->why_inexact(info, op, false));
  if (pass_) pass_->drop_plan();
}

// ---- values from outside -------------------------------------------------------------------------------------------

Id Recording::look_up(const at::Tensor& tensor) {
  c10::StorageImpl* const storage = libtorch::storage_of(tensor);
  const Id value = values_.bindings().find(storage);
  if (value != no_value && !values_.bindings().written_unseen(value)) return value;
  const libtorch::Version& version = libtorch::version_of(tensor);
  const Id present = add_from_outside(storage, version, version.enabled() ? version.current_version() : 0);
  if (value != no_value) follow_writes(value, present);
  return present;
}

Id Recording::add_from_outside(c10::StorageImpl* storage, const libtorch::Version& version,
                               std::uint32_t expected_version) {
  const Id value = values_.add(storage, no_operator);
  adopt_from_outside(value, storage);
  values_.bindings().expect(value, version, expected_version);
  return value;
}

void Recording::adopt_from_outside(Id value, const at::Tensor& tensor) {
  c10::StorageImpl* const storage = libtorch::storage_of(tensor);
  values_.bind(storage, value);
  adopt_from_outside(value, storage);
  values_.bindings().expect_present(value, tensor);
}

void Recording::adopt_from_outside(Id value, c10::StorageImpl* storage) {
  // On an accelerator such bytes are in the budget: its allocator says how many they are.
  if (!meter::header_of(*storage) && storage->device_type() == c10::DeviceType::CPU && context_->has(*storage)) {
    context_->counters().unmetered(static_cast<Bytes>(storage->nbytes()), storage);
  }
  if (values_.may_evict()) values_.hold(value, storage);
}

// ---- saved tensors -------------------------------------------------------------------------------------------------

void Recording::attach(SavedTensor& saved, Id value, c10::StorageImpl* storage) {
  values_.pending().add(saved, value);
  values_.pending_changed();
  values_.save_now(value);
  if (!values_.recomputable(value)) {
    if (!context_->has(*storage)) context_->counters().on_other_device(values_.bytes(value));
    if (!values_.kept(value)) values_.hold(value, storage);
    return;
  }
  const Choice choice = cursor_.choice_of(value);
  const bool in_region = regions().open > 0 && !plan_ && choice != Choice::keep;
  if (in_region && values_.pending().of(value).size() == 1) regions().evicted += values_.bytes(value);
  if (context_->evicts_everything() || in_region || (choice == Choice::evict && values_.may_evict())) {
    if (values_.pending().of(value).size() == 1) context_->evicted_at_once(*storage, values_.bytes(value));
    values_.take_fingerprints(value, libtorch::share(storage));
    return;
  }
  if (journal_.observing() && context_->packs()) observe_form(value, *storage, saved.view.dtype);
  if (plan_ && plan_->dropped(value)) {
    values_.take_fingerprints(value, libtorch::share(storage));
  } else if (!values_.kept(value) && !values_.packed(value)) {
    values_.keep(value, libtorch::share(storage));
    if (choice == Choice::pack) pack_at_once(value, *storage, saved.view.dtype);
  }
}

void Recording::pack_at_once(Id value, const c10::StorageImpl& storage, at::ScalarType dtype) {
  if (!context_->packs() || !values_.may_evict() || storage.device_type() != c10::DeviceType::CPU) return;
  const auto form = form_of_contents(storage, dtype);
  if (form && values_.pack(value, *form, PackedCopy::Account::other)) values_.let_go(value);
}

void Recording::observe_form(Id value, const c10::StorageImpl& storage, at::ScalarType dtype) {
  if (journal_.knows_form_of(value) || values_.bytes(value) < smallest_packed) return;
  if (storage.device_type() != c10::DeviceType::CPU) return;
  const auto form = form_of_contents(storage, dtype);
  journal_.packs(value, form);
  if (form) OpenSteps::of_process().reserve_at_least(CountedDevices::of_process().cpu(), meter::counted(form->bytes()));
}

void Recording::detach(SavedTensor& saved) {
  const Id value = saved.value;
  values_.pending().remove(saved);
  values_.pending_changed();
  if (values_.pending().any_of(value) || (plan_ && plan_->keeps(value))) return;
  values_.release(value);
  // A value from outside that nobody may need for a recipe was only kept for this saved tensor.
  if (!values_.may_evict() && !values_.recomputable(value)) values_.let_go(value);
}

bool Recording::awaits(Id value) const {
  return values_.pending().any_of(value) && !(plan_ && plan_->dropped(value));
}

void Recording::follow_writes(Id from, Id to) {
  if (!values_.pending().any_of(from)) return;
  c10::Storage storage = values_.bindings().last_storage(to);
  if (!storage) return;
  for (SavedTensor* const saved : values_.pending().take_unmoved(from)) {
    saved->fingerprint.clear();
    attach(*saved, to, storage.unsafeGetStorageImpl());
  }
  Arbiter::discard(std::move(storage));
}

void Recording::after_write(c10::StorageImpl* storage, const libtorch::Version& version) {
  const Id before = values_.bindings().find(storage);
  if (before == no_value) return;
  const auto waiting = values_.pending().of(before);
  if (std::any_of(waiting.begin(), waiting.end(), [](const SavedTensor* saved) { return saved->unmoved(); })) {
    follow_writes(before, add_from_outside(storage, version, version.enabled() ? version.current_version() : 0));
  } else {
    values_.unbind(storage, before);
  }
}

void Recording::freed(Id value, const Values::Freed& how) {
  if (values_.freed(value, how) && pass_) pass_->drop_plan();
}

// ---- moments -------------------------------------------------------------------------------------------------------

void Recording::begin_operator(Id op) {
  journal_.begin_operator(op, values_.size(), [this](Id value) { return values_.held_by_program(value); });
}

void Recording::begin_event(const char* name, std::uint64_t hash) {
  journal_.begin_event(name, hash, values_.size(), [this](Id value) { return values_.held_by_program(value); });
}

}  // namespace reprise::internal
