#include <algorithm>
#include <utility>

#include "store/store_state.h"

namespace reprise::internal {

// ---- room -----------------------------------------------------------------------------------------------------------

std::optional<Reservation> StoreState::reserve(TierKind kind, Bytes bytes, const std::string& key, bool replacing) {
  Ledger& ledger = tier(kind).ledger;
  for (;;) {
    // Before anything is tried: a change from now on is a reason to try again.
    const Ledger::Version version = ledger.version();
    if (auto room = ledger.try_reserve(bytes)) return room;
    if (kind == TierKind::disk && disk_->remove_leftovers(key)) continue;

    bool in_use = false;
    if (replacing) {
      if (auto room = reuse_room(kind, bytes, key, in_use)) return room;
    }
    if (!in_use && options_.evict != Evict::nothing && evict_one(kind, key)) continue;
    if (!ledger.wait_past(version, in_use)) return std::nullopt;
  }
}

// Removes the value that has this key, and returns its room together with what is free, if that is enough. Sets
// `in_use` if it will be enough as soon as the threads that use the value have finished.
std::optional<Reservation> StoreState::reuse_room(TierKind kind, Bytes bytes, const std::string& key, bool& in_use) {
  Ledger& ledger = tier(kind).ledger;
  Reference old;
  std::optional<Reservation> room;
  {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end() || found->second->tier() != kind) return std::nullopt;
    StoredValue& value = *found->second;
    const Bytes missing = std::max<Bytes>(0, bytes - value.room().bytes());
    if (value.moving || value.readers > 0) {
      in_use = ledger.fits(missing);
      value.awaited = value.awaited || in_use;
      return std::nullopt;
    }
    room = ledger.try_reserve(missing);
    if (!room) return std::nullopt;
    old = remove(found);
  }
  room->absorb(kind == TierKind::memory ? old->buffer->release() : old->file->release(key));
  room->shrink(bytes);
  return room;
}

// Returns false if no value is at rest but the excepted one.
bool StoreState::evict_one(TierKind kind, const std::string& except) {
  Reference dropped;
  Move move;
  {
    const std::lock_guard lock(mutex_);
    const auto& at_rest = tier(kind).at_rest;
    auto victim = at_rest.begin();
    if (victim != at_rest.end() && (*victim)->key == except) ++victim;
    if (victim == at_rest.end()) return false;

    const auto found = values_.find((*victim)->key);
    if (kind == TierKind::memory && disk_) {
      move = begin_move(found->second);
    } else {
      dropped = remove(found);
      absences_.add(dropped->key, Absences::Why::evicted, dropped->cost);
      ++counts_.dropped;
      if (kind == TierKind::memory) ++counts_.evictions;
    }
  }
  if (move.value) move_to_disk(std::move(move), WithoutRoom::drop);
  return true;
}

// ---- moves ----------------------------------------------------------------------------------------------------------

// Takes the value out of `at_rest`. Its bytes will be freed, so they are in transit.
StoreState::Move StoreState::begin_move(const Reference& value) {
  value->moving = true;
  value->room().mark_in_transit();
  return {value, tier(value->tier()).at_rest.extract(value.get())};
}

// Puts the value into `at_rest` of this tier, unless it is gone.
void StoreState::end_move(Move& move, TierKind where) {
  move.value->moving = false;
  moved_.notify_all();
  if (move.value->gone) return;
  tier(where).at_rest.insert(std::move(move.node));
  move.value->room().mark_at_rest();
}

StoreState::Reference StoreState::remove(Values::iterator found) {
  Reference value = std::move(found->second);
  values_.erase(found);
  retire(*value);
  return value;
}

// Marks a value as gone that is no longer in the table. Threads that use the value keep its buffer and file.
void StoreState::retire(StoredValue& value) {
  StoreTier& from = tier(value.tier());
  from.at_rest.erase(&value);
  --from.count;
  value.gone = true;
  value.room().mark_in_transit();
  if (value.buffer && value.file) value.file->room.mark_in_transit();
  tier(TierKind::memory).ledger.touch();  // the next prefetch may have waited for room for this one
}

// Other threads may read or remove the value meanwhile.
void StoreState::move_to_disk(Move move, WithoutRoom without_room) {
  StoredValue& value = *move.value;
  std::shared_ptr<DiskFile> file = value.file;  // kept since it was read ahead
  try {
    const Bytes bytes = file_bytes(value, value.bytes);
    std::optional<Reservation> room;
    if (!file && bytes <= ledger(TierKind::disk).budget()) room = reserve(TierKind::disk, bytes, value.key, false);
    if (room) file = write(value, value.buffer->bytes(), std::move(*room));
  } catch (...) {
    const std::lock_guard lock(mutex_);
    end_move(move, TierKind::memory);
    throw;
  }

  std::shared_ptr<Buffer> buffer;
  Reference dropped;
  const std::lock_guard lock(mutex_);
  if (value.gone || (!file && without_room == WithoutRoom::stay)) {
    end_move(move, TierKind::memory);
    return;
  }
  ++counts_.evictions;
  if (!file) {
    ++counts_.dropped;
    dropped = remove(values_.find(value.key));
    absences_.add(value.key, Absences::Why::evicted, value.cost);
    end_move(move, TierKind::memory);
    return;
  }
  ++counts_.moves_to_disk;
  --tier(TierKind::memory).count;
  ++tier(TierKind::disk).count;
  buffer = std::move(value.buffer);
  value.file = std::move(file);
  end_move(move, TierKind::disk);
}

// Waits until the value does not move.
StoreState::Values::iterator StoreState::find_at_rest(std::unique_lock<std::mutex>& lock, const std::string& key) {
  for (;;) {
    const auto found = values_.find(key);
    if (found == values_.end() || !found->second->moving) return found;
    moved_.wait(lock);
  }
}

void StoreState::offload_now(const std::string& key) {
  Move move;
  {
    std::unique_lock lock(mutex_);
    const auto found = find_at_rest(lock, key);
    if (found == values_.end() || found->second->tier() == TierKind::disk) return;
    move = begin_move(found->second);
  }
  move_to_disk(std::move(move), WithoutRoom::stay);
}

// Returns false if there is no room for the value now.
bool StoreState::prefetch_now(const std::string& key) {
  Ledger& memory = tier(TierKind::memory).ledger;
  Move move;
  std::optional<Reservation> room;
  std::shared_ptr<DiskFile> file;
  {
    std::unique_lock lock(mutex_);
    const auto found = find_at_rest(lock, key);
    if (found == values_.end() || found->second->tier() == TierKind::memory) return true;
    if (found->second->bytes > memory.budget()) return true;
    room = memory.try_reserve(found->second->bytes);
    if (!room) return false;
    move = begin_move(found->second);
  }

  StoredValue& value = *move.value;
  std::shared_ptr<Buffer> buffer;
  try {
    buffer = std::make_shared<Buffer>(std::move(*room));
    disk_->read(key, *value.file, buffer->bytes());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    end_move(move, TierKind::disk);
    throw;
  }

  const std::lock_guard lock(mutex_);
  if (!value.gone) {
    ++counts_.moves_to_memory;
    --tier(TierKind::disk).count;
    ++tier(TierKind::memory).count;
    value.file->room.mark_at_rest();
    if (!disk_->keeps()) file = std::move(value.file);
    value.buffer = std::move(buffer);
  }
  end_move(move, TierKind::memory);
  return true;
}

}  // namespace reprise::internal
