#include "torch/values/values.h"

#include <algorithm>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"

namespace reprise::internal {

Values::Values(RecipeCursor& cursor, const Journal& journal, RecordingContext& context, bool may_evict)
    : cursor_(cursor),
      journal_(journal),
      context_(context),
      may_evict_(may_evict),
      provenance_(cursor, pending_),
      victims_(context.devices().size()),
      device_fingerprints_(std::make_shared<DeviceFingerprints>(bindings_, pending_, context.devices())) {
  resize();
}

void Values::resize() {
  live_.resize(cursor_.values());
  bindings_.resize(live_.size());
  pending_.resize(live_.size());
  provenance_.resize(live_.size());
}

void Values::renumber(std::size_t from, std::size_t to) {
  if (from == to) return;
  const std::size_t count = live_.size() - from;
  std::move(live_.begin() + static_cast<std::ptrdiff_t>(from), live_.end(),
            live_.begin() + static_cast<std::ptrdiff_t>(to));
  live_.resize(to + count);
  bindings_.renumber(from, to);
  pending_.renumber(from, to);
  provenance_.renumber(from, to);
  for (Id& value : released_) {
    if (value >= static_cast<Id>(from)) value = static_cast<Id>(static_cast<std::size_t>(value) - from + to);
  }
}

// ---- where it is ---------------------------------------------------------------------------------------------------

Id Values::add(c10::StorageImpl* storage, Id maker) {
  const meter::Header* const header = meter::header_of(*storage);
  const Bytes bytes = header ? header->bytes : static_cast<Bytes>(storage->nbytes());
  const Id value = cursor_.add_value(bytes, maker, context_.device_of(header));
  resize();
  bind(storage, value);
  return value;
}

void Values::bind(c10::StorageImpl* storage, Id value) {
  const Id before = bindings_.find(storage);
  if (before != no_value && before != value) unbind(storage, before);
  bindings_.bind(storage, value, cursor_.info(value).maker != no_operator);
  live_[value].made_on = libtorch::current_stream(storage->device());
  if (provenance_.availability(value) == Availability::not_seen) provenance_.become(value, Availability::normal);
}

void Values::unbind(c10::StorageImpl* storage, Id value) {
  if (provenance_.availability(value) != Availability::saved_copy) let_go(value);
  bindings_.unbind(storage);
}

c10::Storage Values::storage_even_if_evicted(Id value) const {
  if (live_[value].kept) return live_[value].kept;
  c10::Storage storage = bindings_.storage(value);
  if (!storage || !bindings_.written_unseen(value)) return storage;
  Arbiter::discard(std::move(storage));
  return {};
}

c10::Storage Values::storage(Id value) const {
  if (context_.evicts_everything() && recomputable(value)) return live_[value].kept;
  return storage_even_if_evicted(value);
}

bool Values::resident(Id value) const {
  if (live_[value].kept) return true;
  c10::Storage found = storage(value);
  const bool there = static_cast<bool>(found);
  Arbiter::discard(std::move(found));
  return there;
}

// ---- keeping and evicting ----------------------------------------------------------------------------------------

void Values::let_go(Id value) {
  Arbiter::discard(std::exchange(live_[value].kept, c10::Storage()));
}

void Values::keep(Id value, c10::Storage storage) {
  let_go(value);
  live_[value].kept = std::move(storage);
  if (may_evict_ && recomputable(value) && cursor_.choice_of(value) != Choice::keep) newly_kept_.push_back(value);
}

VictimQueue& Values::victims(DeviceOrdinal device) {
  for (const Id value : newly_kept_) {
    if (!live_[value].kept || !recomputable(value)) continue;
    const RecordedValue& info = cursor_.info(value);
    victims_[info.device].add(
        value, journal_.cost_of(info.maker), info.bytes, live_[value].saved_at,
        context_.hints().priority_of(cursor_.recipes().operators[info.maker].structural_hash.back()));
  }
  newly_kept_.clear();
  return victims_[device];
}

void Values::release(Id value) {
  if (recomputable(value)) let_go(value);
  if (recomputable(value) || live_[value].kept) copies(value).drop();
  if (!cursor_.info(value).must_keep_past_inputs || !live_[value].kept) return;
  if (std::find(released_.begin(), released_.end(), value) == released_.end()) released_.push_back(value);
}

bool Values::release_outlasting() {
  return std::erase_if(released_, [this](Id value) {
           if (pending_.any_of(value) || provenance_.needed(value)) return false;
           let_go(value);
           return true;
         }) != 0;
}

void Values::evict(Id value) {
  if (cursor_.info(value).must_keep_past_inputs) return;
  if (pending_.any_of(value) && live_[value].kept) {
    take_fingerprints(value, live_[value].kept);
    context_.evicted_at_once(*live_[value].kept.unsafeGetStorageImpl(), bytes(value));
  }
  let_go(value);
  live_[value].copies.give_up_fetched();
}

void Values::take_fingerprints(Id value, const c10::Storage& contents) {
  if (!cursor_.in_recipes(value) || !context_.verifies(cursor_.info(value))) return;
  const bool on_device = contents.device_type() != c10::DeviceType::CPU;
  if (on_device && live_[value].copies.usable_below()) return;  // its copy is verified by the tier
  if (on_device) return device_fingerprints_->read_later(contents, live_[value].made_on);
  const SavedTensor* last = nullptr;
  for (SavedTensor* const saved : pending_.of(value)) {
    if (!saved->fingerprint.empty() || !saved->unmoved()) continue;
    saved->fingerprint = last && last->view == saved->view ? last->fingerprint : fingerprint(contents, saved->view);
    last = saved;
  }
}

bool Values::pack(Id value, const PackedForm& form, PackedCopy::Account account) {
  LiveValue& live = live_[value];
  if (live.copies.packed()) return true;
  return live.kept && live.copies.pack(form, live.kept, bytes(value), account, context_.counters());
}

std::shared_ptr<const TierCopy> Values::put_below(Id value) {
  ValueCopies& copies = live_[value].copies;
  if (copies.usable_below()) return copies.below();
  TransferTier* const tier = context_.below(device(value));
  c10::Storage contents = tier ? storage_even_if_evicted(value) : c10::Storage();
  if (!contents) return nullptr;
  copies.put(*tier, std::move(contents), live_[value].made_on, context_.verifies_copy(cursor_.info(value)));
  return copies.below();
}

void Values::mark_copy_verified(Id value) {
  cursor_.mark_copy_verified(value);
  context_.counters().verified();
}

bool Values::may_put_away(Id value) const {
  const LiveValue& live = live_[value];
  return may_evict_ && live.kept && live.kept.use_count() == 1 && !live.copies.below() && !live.emptied &&
         !recomputable(value) && provenance_.availability(value) != Availability::not_seen &&
         provenance_.availability(value) < Availability::lost && meter::header_of(*live.kept.unsafeGetStorageImpl());
}

void Values::put_away(Id value) {
  if (live_[value].kept && live_[value].kept.use_count() == 1) let_go(value);
}

bool Values::give_up_origins(DeviceOrdinal device, Bytes factor) {
  if (!may_evict_) return false;
  const std::size_t now = journal_.moment();
  if (factor > 1 && now < look_for_origins_at_) return false;
  constexpr Bytes little = 64 << 10;
  bool any = false;
  for (Id v = 0; v < static_cast<Id>(live_.size()); ++v) {
    if (this->device(v) == device && bytes(v) >= little) any |= give_up(v, factor);
  }
  if (!any) look_for_origins_at_ = now + now / 16 + 16;
  return any;
}

bool Values::give_up(Id value, Bytes factor) {
  LiveValue& live = live_[value];
  const bool is_origin = provenance_.availability(value) == Availability::normal ||
                         provenance_.availability(value) == Availability::recipe_broken;
  if (!live.kept || !provenance_.is_used(value) || !is_origin || live.emptied || recomputable(value)) return false;
  if (live.kept.use_count() > 1 || pending_.any_of(value) || cursor_.info(value).must_keep_past_inputs) return false;
  Descendants gone(cursor_, value);
  std::vector<Id> instead, passed;
  Bytes more = 0;
  for (Id op = provenance_.first_use(value); op < cursor_.next(); ++op) {
    if (!gone.reach(op)) continue;
    for (const Output& output : cursor_.recipes().outputs_of(op)) {
      if (resident(output.value)) {
        instead.push_back(output.value);
        more += bytes(output.value);
      } else if (pending_.any_of(output.value) || live_[output.value].copies.usable()) {
        return false;  // it has to come back
      } else {
        gone.add(output.value);
        passed.push_back(output.value);
      }
    }
    if (more * factor >= bytes(value)) return false;
  }
  for (const Id one : instead) {
    if (!recomputable(one)) continue;
    keep(one, storage_even_if_evicted(one));
    provenance_.become(one, Availability::recipe_broken);
  }
  for (const Id one : passed) {
    if (provenance_.availability(one) == Availability::normal) provenance_.become(one, Availability::lost);
  }
  provenance_.become(value, Availability::lost);
  let_go(value);
  provenance_.changed();
  return true;
}

// ---- writes of the program -----------------------------------------------------------------------------------------

bool Values::would_copy(Id value) {
  const LiveValue& live = live_[value];
  return !recomputable(value) && provenance_.is_used(value) && live.kept &&
         provenance_.availability(value) < Availability::saved_copy && provenance_.needed(value);
}

void Values::replace(Id value, c10::Storage copy, std::optional<c10::Stream> made_on) {
  let_go(value);
  live_[value].made_on = made_on;
  live_[value].kept = std::move(copy);
  provenance_.become(value, Availability::saved_copy);
  bindings_.expect_nothing(value);
}

void Values::lose(Id value, Availability how) {
  if (recomputable(value) || !provenance_.is_used(value) || provenance_.availability(value) >= Availability::saved_copy)
    return;
  provenance_.become(value, how);
  Descendants descendants(cursor_, value);
  for (Id op = 0; op < cursor_.next(); ++op) {
    if (!descendants.reach(op)) continue;
    for (const Output& output : cursor_.recipes().outputs_of(op)) {
      descendants.add(output.value);
      c10::Storage contents = storage_even_if_evicted(output.value);
      if (!contents) continue;  // nothing needs it any more, but others are made of it
      live_[output.value].kept = std::move(contents);
      if (provenance_.availability(output.value) == Availability::normal)
        provenance_.become(output.value, Availability::recipe_broken);
    }
  }
}

// ---- memory that the program frees ---------------------------------------------------------------------------------

// What backward itself will ask for has to be back by then, with Reprise or without.
bool Values::would_adopt(Id value, const FreedMemory& how) {
  return (how.on_device || (!how.moved && !how.by_library && !pending_.any_of(value))) && would_copy(value);
}

bool Values::mark_emptied(Id value, const FreedMemory& how) {
  LiveValue& live = live_[value];
  if (recomputable(value)) {
    let_go(value);
    return false;
  }
  if (would_adopt(value, how)) {
    replace(value, how.adopted, live.made_on);
    return false;
  }
  if (!provenance_.is_used(value) || provenance_.availability(value) >= Availability::saved_copy) return false;
  if (how.on_device) {
    lose(value, Availability::lost);
    return false;
  }
  live.emptied = Emptied{how.bytes, {}};
  if (context_.verifies(cursor_.info(value))) live.emptied->fingerprint = fingerprint(how.contents, how.bytes);
  return !how.moved && keep_what_outlasts(value);
}

// What the program cannot reach any more, only nodes of backward that exist by now will ask for, and they need the
// value itself to be back. What it can reach may be asked for by others, at any time.
bool Values::keep_what_outlasts(Id value) {
  Descendants descendants(cursor_, value);
  bool more = false;
  for (Id op = provenance_.first_use(value); op < cursor_.next(); ++op) {
    if (!descendants.reach(op)) continue;
    for (const Output& output : cursor_.recipes().outputs_of(op)) {
      if (!recomputable(output.value)) continue;  // it is kept
      if (!held_by_program(output.value)) {
        descendants.add(output.value);
        continue;
      }
      if (!live_[output.value].kept) live_[output.value].kept = bindings_.storage(output.value);
      cursor_.mark_outlasting(output.value);
      more = true;
    }
  }
  if (more) provenance_.changed();
  return more;
}

bool Values::has_contents(Id value) {
  LiveValue& live = live_[value];
  if (!live.emptied) return true;
  if (!live.kept || !live.kept.data() || live.kept.nbytes() < live.emptied->bytes) return false;
  Fingerprint& expected = live.emptied->fingerprint;
  if (expected.empty()) return true;
  if (!differences(expected, fingerprint(live.kept.data(), live.emptied->bytes)).empty()) return false;
  cursor_.mark_verified(value);
  expected.clear();
  return true;
}

// ---- the end -------------------------------------------------------------------------------------------------------

void Values::end() {
  for (Id v = 0; v < static_cast<Id>(live_.size()); ++v) {
    if (pending_.any_of(v) || provenance_.needed(v)) continue;
    let_go(v);
    copies(v).drop();
  }
}

void Values::clear() {
  device_fingerprints_->end();
  bindings_.clear();
  Arbiter::discard_all(std::move(live_));
  live_.clear();
}

}  // namespace reprise::internal
