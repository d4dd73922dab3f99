#include "torch/values/values.h"

#include <algorithm>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/values/dependence.h"

namespace reprise::internal {

Values::Values(RecipeCursor& cursor, const Journal& journal, RecordingContext& context, bool may_evict)
    : cursor_(cursor),
      journal_(journal),
      context_(context),
      may_evict_(may_evict),
      victims_(context.devices().size()),
      device_fingerprints_(std::make_shared<DeviceFingerprints>(bindings_, pending_, context.devices())) {
  resize();
}

void Values::resize() {
  live_.resize(cursor_.values());
  bindings_.resize(live_.size());
  pending_.resize(live_.size());
}

void Values::renumber(std::size_t from, std::size_t to) {
  if (from == to) return;
  const std::size_t count = live_.size() - from;
  std::move(live_.begin() + static_cast<std::ptrdiff_t>(from), live_.end(),
            live_.begin() + static_cast<std::ptrdiff_t>(to));
  live_.resize(to + count);
  bindings_.renumber(from, to);
  pending_.renumber(from, to);
  needed_known_ = false;
  for (Id& value : released_) {
    if (value >= static_cast<Id>(from)) value = static_cast<Id>(static_cast<std::size_t>(value) - from + to);
  }
}

void Values::become(Id value, Availability availability) {
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(may_become(live_[value].availability, availability));
  live_[value].availability = availability;
}

void Values::use(Id value) {
  if (live_[value].uses++ == 0) live_[value].first_use = cursor_.next();
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
  if (live_[value].availability == Availability::not_seen) become(value, Availability::normal);
}

void Values::unbind(c10::StorageImpl* storage, Id value) {
  if (live_[value].availability != Availability::saved_copy) let_go(value);
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
  if (may_evict_ && recomputable(value) && cursor_.choice_of(value) != Choice::keep) kept_lately_.push_back(value);
}

VictimQueue& Values::victims(DeviceOrdinal device) {
  for (const Id value : kept_lately_) {
    if (!live_[value].kept || !recomputable(value)) continue;
    const RecordedValue& info = cursor_.info(value);
    victims_[info.device].add(
        value, journal_.cost_of(info.maker), info.bytes, live_[value].saved_at,
        context_.hints().priority_of(cursor_.recipes().operators[info.maker].structural_hash.back()));
  }
  kept_lately_.clear();
  return victims_[device];
}

void Values::release(Id value) {
  if (recomputable(value)) let_go(value);
  if (recomputable(value) || live_[value].kept) drop_copies(value);
  if (!cursor_.info(value).must_keep_past_inputs || !live_[value].kept) return;
  if (std::find(released_.begin(), released_.end(), value) == released_.end()) released_.push_back(value);
}

bool Values::release_outlasting() {
  return std::erase_if(released_, [this](Id value) {
           if (pending_.any_of(value) || needed(value)) return false;
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
  const bool far = contents.device_type() != c10::DeviceType::CPU;
  if (far && live_[value].copies.usable_below()) return;  // its copy is verified by the tier
  if (far) return device_fingerprints_->read_later(contents, live_[value].made_on);
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
  return may_evict_ && live.kept && live.kept.use_count() == 1 && !live.copies.below() && !live.away &&
         !recomputable(value) && live.availability != Availability::not_seen &&
         live.availability < Availability::lost && meter::header_of(*live.kept.unsafeGetStorageImpl());
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
  const bool is_origin = live.availability == Availability::normal || live.availability == Availability::recipe_broken;
  if (!live.kept || live.uses == 0 || !is_origin || live.away || recomputable(value)) return false;
  if (live.kept.use_count() > 1 || pending_.any_of(value) || cursor_.info(value).must_keep_past_inputs) return false;
  Descendants gone(cursor_, value);
  std::vector<Id> instead, passed;
  Bytes more = 0;
  for (Id op = live.first_use; op < cursor_.next(); ++op) {
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
    become(one, Availability::recipe_broken);
  }
  for (const Id one : passed) {
    if (live_[one].availability == Availability::normal) become(one, Availability::lost);
  }
  become(value, Availability::lost);
  let_go(value);
  pending_changed();
  return true;
}

bool Values::needed(Id value) {
  if (!needed_known_) find_needed();
  return static_cast<std::size_t>(value) < needed_.size() && needed_[value];
}

void Values::find_needed() {
  std::vector<Id> recomputed;
  for (Id v = 0; v < static_cast<Id>(live_.size()); ++v) {
    if (pending_.any_of(v) && recomputable(v)) recomputed.push_back(v);
  }
  needed_ = with_origins(cursor_, std::move(recomputed), [this](Id value) { return recomputable(value); });
  needed_known_ = true;
}

// ---- writes of the program -----------------------------------------------------------------------------------------

bool Values::would_copy(Id value) {
  const LiveValue& live = live_[value];
  return !recomputable(value) && live.uses > 0 && live.kept && live.availability < Availability::saved_copy &&
         needed(value);
}

void Values::replace(Id value, c10::Storage copy, std::optional<c10::Stream> made_on) {
  let_go(value);
  live_[value].made_on = made_on;
  live_[value].kept = std::move(copy);
  become(value, Availability::saved_copy);
  bindings_.expect_nothing(value);
}

void Values::lose(Id value, Availability how) {
  if (recomputable(value) || live_[value].uses == 0 || live_[value].availability >= Availability::saved_copy) return;
  become(value, how);
  Descendants descendants(cursor_, value);
  for (Id op = 0; op < cursor_.next(); ++op) {
    if (!descendants.reach(op)) continue;
    for (const Output& output : cursor_.recipes().outputs_of(op)) {
      descendants.add(output.value);
      c10::Storage contents = storage_even_if_evicted(output.value);
      if (!contents) continue;  // nobody asks for it any more, but others are made of it
      live_[output.value].kept = std::move(contents);
      if (live_[output.value].availability == Availability::normal) become(output.value, Availability::recipe_broken);
    }
  }
}

// ---- memory that the program frees ---------------------------------------------------------------------------------

// What backward itself will ask for has to be back by then, with Reprise or without.
bool Values::would_take(Id value, const Freed& how) {
  return (how.far || (!how.moved && !how.by_library && !pending_.any_of(value))) && would_copy(value);
}

bool Values::freed(Id value, const Freed& how) {
  LiveValue& live = live_[value];
  if (recomputable(value)) {
    let_go(value);
    return false;
  }
  if (would_take(value, how)) {
    replace(value, how.taken, live.made_on);
    return false;
  }
  if (live.uses == 0 || live.availability >= Availability::saved_copy) return false;
  if (how.far) return lose(value, Availability::lost), false;
  live.away = Away{how.bytes, {}};
  if (context_.verifies(cursor_.info(value))) live.away->fingerprint = fingerprint(how.contents, how.bytes);
  return !how.moved && keep_what_outlasts(value);
}

// What the program cannot reach any more, only nodes of backward that exist by now will ask for, and they need the
// value itself to be back. What it can reach may be asked for by others, at any time.
bool Values::keep_what_outlasts(Id value) {
  Descendants descendants(cursor_, value);
  bool more = false;
  for (Id op = live_[value].first_use; op < cursor_.next(); ++op) {
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
  if (more) needed_known_ = false;
  return more;
}

bool Values::has_contents(Id value) {
  LiveValue& live = live_[value];
  if (!live.away) return true;
  if (!live.kept || !live.kept.data() || live.kept.nbytes() < live.away->bytes) return false;
  Fingerprint& expected = live.away->fingerprint;
  if (expected.empty()) return true;
  if (!differences(expected, fingerprint(live.kept.data(), live.away->bytes)).empty()) return false;
  cursor_.mark_verified(value);
  expected.clear();
  return true;
}

// ---- the end -------------------------------------------------------------------------------------------------------

void Values::end() {
  for (Id v = 0; v < static_cast<Id>(live_.size()); ++v) {
    if (pending_.any_of(v) || needed(v)) continue;
    let_go(v);
    drop_copies(v);
  }
}

void Values::clear() {
  device_fingerprints_->end();
  bindings_.clear();
  Arbiter::discard_all(std::move(live_));
  live_.clear();
}

}  // namespace reprise::internal
