#include "reprise/chain/places.h"

#include <chrono>

#include "reprise/chain/statistics.h"

namespace reprise {

StatePlaces::StatePlaces() = default;
StatePlaces::~StatePlaces() = default;

void StatePlaces::codec(const Codec* codec) {
  codec_ = codec;
}

void StatePlaces::disk(DiskTier tier, std::optional<Bytes> transit, FileSystem* files) {
  disk_.reset();
  disk_tier_ = std::move(tier);
  transit_ = transit;
  files_ = files;
}

Store* StatePlaces::existing(Place place) const {
  return place == Place::packed ? packed_.get() : disk_.get();
}

Store& StatePlaces::store(Place place, const ArrayView& first) {
  if (place == Place::packed && !packed_) {
    packed_ = std::make_unique<Store>(StoreOptions{.remember = remember::all(), .give_up = GiveUp::nothing});
  }
  if (place == Place::disk && !disk_) {
    disk_ = std::make_unique<Store>(StoreOptions{.memory = transit_.value_or(4 * static_cast<Bytes>(first.bytes())),
                                                 .disk = disk_tier_,
                                                 .remember = remember::all(),
                                                 .give_up = GiveUp::oldest,
                                                 .files = files_});
  }
  return *existing(place);
}

void StatePlaces::put(Place place, Id state, const ArrayView& array) {
  Store& to = store(place, array);
  const Key key(state);
  if (to.put(key, array, PutOptions{.codec = codec_}) != PutResult::stored) {
    throw ChainError("[chain] state " + key.text + " of " + std::to_string(array.bytes()) + " bytes found no place");
  }
  if (place == Place::disk) to.offload({&key, 1});
}

Array StatePlaces::get(Place place, Id state, bool last) {
  Store* from = existing(place);
  if (!from) throw ChainError("[chain] state " + std::to_string(state) + " was never put");
  return last ? from->take(state) : from->get(state);
}

void StatePlaces::erase(Place place, Id state) {
  if (Store* from = existing(place)) from->erase(state);
}

bool StatePlaces::contains(Place place, Id state) const {
  const Store* in = existing(place);
  return in && in->contains(state);
}

void StatePlaces::prefetch(std::span<const Id> states) {
  if (!disk_ || states.empty()) return;
  std::vector<Key> keys(states.begin(), states.end());
  disk_->prefetch(keys);
}

void StatePlaces::clear() noexcept {
  for (std::unique_ptr<Store>* store : {&packed_, &disk_}) {
    try {
      if (!*store) continue;
      (*store)->clear();
      (*store)->wait();  // what is on its way holds bytes until it is there
    } catch (const Error&) {
      store->reset();  // a file that cannot be written or removed; nobody would want to hear of it here
    }
  }
}

PlaceTerms StatePlaces::measure(Place place, const ArrayView& array) const {
  using Clock = std::chrono::steady_clock;
  StoreOptions options{.remember = remember::all(), .give_up = GiveUp::nothing, .codec = codec_, .files = files_};
  if (place == Place::disk) {
    options.memory = 0;  // straight to disk
    options.disk = disk_tier_;
  }
  Store store(options);
  const auto start = Clock::now();
  store.put(0, array);
  const auto middle = Clock::now();
  const Array back = store.get(0);
  const auto end = Clock::now();
  const TierKind tier = place == Place::disk ? TierKind::disk : TierKind::memory;
  return {store.bytes(tier), std::chrono::duration<double>(middle - start).count(),
          std::chrono::duration<double>(end - middle).count()};
}

Bytes StatePlaces::memory() const {
  return (packed_ ? packed_->bytes() : 0) + (disk_ ? disk_->bytes() : 0);
}

Bytes StatePlaces::on_disk() const {
  return disk_ ? disk_->bytes(TierKind::disk) : 0;
}

StoreStatistics StatePlaces::statistics(Place place) const {
  const Store* of = existing(place);
  return of ? of->statistics() : StoreStatistics{};
}

}  // namespace reprise
