#include "torch/evict/saved_values.h"

#include <algorithm>
#include <utility>

#include "torch/evict/save_decision.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/counted_device.h"
#include "torch/memory/meter.h"
#include "torch/values/open_steps.h"
#include "torch/values/regions.h"

namespace reprise::internal {
namespace {

Save save_of(Recording& r, Id value) {
  const PlanCursor* const plan = r.plan();
  return {.recomputable = r.values().recomputable(value),
          .may_evict = r.values().may_evict(),
          .evicts_everything = r.context().evicts_everything(),
          .in_region = regions().open > 0 && !plan,
          .dropped_by_plan = plan && plan->dropped(value),
          .choice = r.cursor().choice_of(value)};
}

std::optional<PackedForm> form_of(const c10::StorageImpl& storage, at::ScalarType dtype) {
  return storage.device_type() == c10::DeviceType::CPU ? form_of_contents(storage, dtype) : std::nullopt;
}

// Notes how the value packs, for plans: large ones only.
void observe_form(Recording& r, Id value, const c10::StorageImpl& storage, at::ScalarType dtype) {
  constexpr Bytes least = 4 << 10;
  Journal& journal = r.journal();
  if (!journal.observing() || !r.context().packs()) return;
  if (journal.profile().form_of(value) || r.values().bytes(value) < least) return;
  const auto form = form_of(storage, dtype);
  journal.packs(value, form);
  if (form) OpenSteps::of_process().reserve_at_least(CountedDevices::of_process().cpu(), meter::counted(form->bytes()));
}

void hold(Recording& r, Id value, c10::StorageImpl* storage) {
  if (!r.context().has(*storage)) r.context().counters().on_other_device(r.values().bytes(value));
  if (!r.values().kept(value)) r.values().hold(value, storage);
}

void keep(Recording& r, Id value, c10::StorageImpl* storage, at::ScalarType dtype, bool packed) {
  Values& values = r.values();
  if (values.kept(value) || values.copies(value).packed()) return;
  values.keep(value, libtorch::share(storage));
  if (!packed || !r.context().packs() || !values.may_evict()) return;
  const auto form = form_of(*storage, dtype);
  if (form && values.pack(value, *form, PackedCopy::Account::other)) values.let_go(value);
}

// Counts the value as evicted when it is saved for the first time.
void count_evicted(Recording& r, Id value, const c10::StorageImpl& storage, const Save& save) {
  if (r.values().pending().of(value).size() > 1) return;
  if (goes_with_region(save)) regions().evicted += r.values().bytes(value);
  r.context().evicted_at_once(storage, r.values().bytes(value));
}

}  // namespace

Id look_up(Recording& r, c10::StorageImpl* storage, const libtorch::Version& version, std::uint32_t expected_version) {
  const Bindings& bindings = r.values().bindings();
  const Id known = bindings.find(storage);
  if (known != no_value && !bindings.written_unseen(known)) return known;
  const Id present = r.add_from_outside(storage, version, expected_version);
  if (known != no_value) follow_writes(r, known, present);
  return present;
}

Id look_up(Recording& r, const at::Tensor& tensor) {
  const libtorch::Version& version = libtorch::version_of(tensor);
  return look_up(r, libtorch::storage_of(tensor), version, version.enabled() ? version.current_version() : 0);
}

void attach(Recording& r, SavedTensor& saved, Id value, c10::StorageImpl* storage) {
  Values& values = r.values();
  values.pending().add(saved, value);
  values.provenance().changed();
  values.save_now(value);
  const Save save = save_of(r, value);
  const OnSave action = decide(save);
  if (action != OnSave::hold && action != OnSave::evict) observe_form(r, value, *storage, saved.view.dtype);
  switch (action) {
    case OnSave::hold: return hold(r, value, storage);
    case OnSave::keep: return keep(r, value, storage, saved.view.dtype, false);
    case OnSave::pack: return keep(r, value, storage, saved.view.dtype, true);
    case OnSave::evict: count_evicted(r, value, *storage, save); break;
    case OnSave::leave: break;
  }
  values.take_fingerprints(value, libtorch::share(storage));
}

void detach(Recording& r, SavedTensor& saved) {
  Values& values = r.values();
  const Id value = saved.value;
  values.pending().remove(saved);
  values.provenance().changed();
  const PlanCursor* const plan = r.plan();
  if (values.pending().any_of(value) || (plan && plan->keeps(value))) return;
  values.release(value);
  // A value from outside that no recipe may need was only kept for this saved tensor.
  if (!values.may_evict() && !values.recomputable(value)) values.let_go(value);
}

void follow_writes(Recording& r, Id from, Id to) {
  Values& values = r.values();
  if (!values.pending().any_of(from)) return;
  c10::Storage storage = values.bindings().last_storage(to);
  if (!storage) return;
  for (SavedTensor* const saved : values.pending().take_unmoved(from)) {
    saved->fingerprint.clear();
    attach(r, *saved, to, storage.unsafeGetStorageImpl());
  }
  Arbiter::discard(std::move(storage));
}

void after_write(Recording& r, c10::StorageImpl* storage, const libtorch::Version& version) {
  Values& values = r.values();
  const Id before = values.bindings().find(storage);
  if (before == no_value) return;
  if (std::ranges::any_of(values.pending().of(before), &SavedTensor::unmoved)) {
    const std::uint32_t expected_version = version.enabled() ? version.current_version() : 0;
    follow_writes(r, before, r.add_from_outside(storage, version, expected_version));
  } else {
    values.unbind(storage, before);
  }
}

}  // namespace reprise::internal
