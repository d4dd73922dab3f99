#include "chain/state_tiers.h"

#include <fmt/format.h>

#include <chrono>

#include "store/disk.h"

namespace reprise::internal {

// ---- settings ----

Bytes StateTierSettings::room(const ArrayView& array) const {
  return codec ? static_cast<Bytes>(codec->room(array).value_or(0)) : 0;
}

Bytes StateTierSettings::usual_transit(const ArrayView& first) const {
  return transit_bytes(4, static_cast<Bytes>(first.bytes()), room(first));
}

StateTierCosts StateTierSettings::measure(StateTier tier, const ArrayView& array) const {
  using Clock = std::chrono::steady_clock;
  StoreOptions options{.remember = remember::all(), .evict = Evict::nothing, .codec = codec, .files = files};
  if (tier == StateTier::disk) {
    options.disk = disk;
    options.disk->keep = false;
  }
  Store store(options);
  const auto start = Clock::now();
  (void)store.put(0, array);
  if (tier == StateTier::disk) {
    const Key key(0);
    store.offload({&key, 1});
    store.wait();
  }
  const auto middle = Clock::now();
  const Array back = store.get(0);
  const auto end = Clock::now();
  const TierKind kind = tier == StateTier::disk ? TierKind::disk : TierKind::memory;
  return {store.bytes(kind), std::chrono::duration<double>(middle - start).count(),
          std::chrono::duration<double>(end - middle).count()};
}

StateTiers::StateTiers() = default;
StateTiers::~StateTiers() = default;

void StateTiers::set_codec(const Codec* codec) {
  next_.codec = codec;
}

void StateTiers::set_disk(DiskTier tier, std::optional<Bytes> transit) {
  next_.disk = std::move(tier);
  next_.transit = transit;
  disk_is_new_ = true;
}

void StateTiers::begin(std::optional<Bytes> transit) {
  used_ = next_;
  if (std::exchange(disk_is_new_, false)) disk_.reset();
  begin_again(transit);
}

void StateTiers::begin_again(std::optional<Bytes> transit) {
  transit_ = used_.transit ? used_.transit : transit;
  if (disk_ && transit_ && disk_->budget() != *transit_ && !is_kept()) disk_.reset();
}

// ---- states ----

Store* StateTiers::existing(StateTier tier) const {
  return tier == StateTier::packed ? packed_.get() : disk_.get();
}

Store& StateTiers::store(StateTier tier, Bytes transit) {
  if (tier == StateTier::packed && !packed_) {
    packed_ = std::make_unique<Store>(StoreOptions{.remember = remember::all(), .evict = Evict::nothing});
  }
  if (tier == StateTier::disk && !disk_) {
    disk_ = std::make_unique<Store>(StoreOptions{.memory = transit_.value_or(transit),
                                                 .disk = used_.disk,
                                                 .remember = remember::all(),
                                                 .evict = is_kept() ? Evict::nothing : Evict::oldest,
                                                 .codec = used_.codec,
                                                 .files = used_.files});
  }
  return *existing(tier);
}

// The store would make room on disk by evicting, so no more is ever put than has room there: all states in the store
// have room on disk, also those that are in memory at the moment.
Bytes StateTiers::put(StateTier tier, Id state, const ArrayView& array) {
  const auto plain = static_cast<Bytes>(array.bytes());
  Store& to = existing(tier) ? *existing(tier) : store(tier, used_.usual_transit(array));
  const Key key(key_of(state));
  const Bytes free = tier == StateTier::disk ? used_.disk->budget - file_bytes_ : largest_bytes;
  if (plain > to.budget() && plain + Disk::header_bytes > free) fail_disk(state, plain + Disk::header_bytes);
  if (to.put(key, array, PutOptions{.codec = used_.codec}) != PutResult::stored) {
    throw ChainError(fmt::format("[chain] state {} of {} bytes found no place", state, plain));
  }
  const Bytes bytes = to.describe(key).bytes;
  if (tier == StateTier::packed) return bytes;
  const Bytes file = bytes + Disk::header_bytes;
  if (file > free) {
    to.erase(key);
    fail_disk(state, file);
  }
  files_[key_of(state)] = file;
  file_bytes_ += file;
  to.offload({&key, 1});
  return file;
}

void StateTiers::discount_file(Id key) {
  const auto file = files_.find(key);
  if (file == files_.end()) return;
  file_bytes_ -= file->second;
  files_.erase(file);
}

Array StateTiers::get(StateTier tier, Id state, bool last) {
  Store* from = existing(tier);
  if (!from) throw ChainError("[chain] state " + std::to_string(state) + " was never put");
  const Id key = key_of(state);
  if (!last) return from->get(key);
  Array array = from->take(key);
  if (tier == StateTier::disk) discount_file(key);
  return array;
}

std::optional<Array> StateTiers::find(Id state) {
  for (const StateTier tier : {StateTier::packed, StateTier::disk}) {
    if (contains(tier, state)) return get(tier, state, false);
  }
  return std::nullopt;
}

void StateTiers::erase(StateTier tier, Id state) {
  Store* from = existing(tier);
  if (!from) return;
  const Id key = key_of(state);
  from->erase(key);
  if (tier == StateTier::disk) discount_file(key);
}

bool StateTiers::contains(StateTier tier, Id state) const {
  const Store* in = existing(tier);
  return in && in->contains(key_of(state));
}

void StateTiers::prefetch(std::span<const Id> states, Id first) {
  if (!disk_ || states.empty()) return;
  std::vector<Key> keys;
  for (const Id state : states) keys.emplace_back(first + state);
  disk_->prefetch(keys);
}

Store& StateTiers::kept_store(Bytes transit, bool waits) {
  if (!disk_ && waits) transit_ = 0;
  return store(StateTier::disk, transit);
}

void StateTiers::close_kept() noexcept {
  if (!is_kept() || !disk_) return;
  try {
    disk_->wait();
  } catch (const Error&) {  // what could not be written is done again
  }
  disk_.reset();
}

void StateTiers::remove_kept() {
  disk_.reset();
  Disk(used_.files ? *used_.files : FileSystem::machine(), used_.disk->folder, true).remove_kept();
}

void StateTiers::clear() noexcept {
  close_kept();
  clear_for_another_plan();
  adopted_.clear();
}

void StateTiers::clear_for_another_plan() noexcept {
  clear(packed_);
  if (!is_kept()) clear(disk_);
  files_.clear();
  file_bytes_ = 0;
}

void StateTiers::clear(std::unique_ptr<Store>& store) noexcept {
  try {
    if (!store) return;
    store->clear();
    store->wait();  // what is on its way holds bytes until it is there
  } catch (const Error&) {
    store.reset();  // a file that cannot be written or removed, which is no reason to fail here
  }
}

// ---- numbers ----

Bytes StateTiers::memory() const {
  return (packed_ ? packed_->bytes() : 0) + (disk_ ? disk_->bytes() : 0);
}

Bytes StateTiers::on_disk() const {
  return disk_ ? disk_->bytes(TierKind::disk) : 0;
}

StoreStatistics StateTiers::statistics(StateTier tier) const {
  const Store* of = existing(tier);
  return of ? of->statistics() : StoreStatistics{};
}

void StateTiers::fail_disk(Id state, Bytes bytes) const {
  throw ChainError(
      fmt::format("[chain] disk.budget is {} bytes, of which {} are taken: the {} of state {} do not fit. Raise it, or "
                  "give the schedule fewer slots on disk",
                  used_.disk->budget, file_bytes_, bytes, state));
}

}  // namespace reprise::internal
