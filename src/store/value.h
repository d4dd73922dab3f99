// A value in a store, and a tier as the list of the values at rest in it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "reprise/store/store.h"
#include "store/buffer.h"
#include "store/disk.h"

namespace reprise::internal {

// A buffer and a file are shared with the threads that read them, and last until the last of these is done.
struct StoredValue {
  std::string key;
  std::uint64_t number = 0;
  double cost = 0;
  Element element = Element::float32;
  Shape shape;
  Bytes plain_bytes = 0;
  const Codec* codec = nullptr;
  Bytes bytes = 0;   // coded
  double score = 0;  // the value with the least is evicted first, of equal ones the oldest

  // What changes, guarded by the store's lock. The value is in memory if it has a buffer, and otherwise on disk. It has
  // both if its file is kept though it was read ahead.
  std::shared_ptr<Buffer> buffer;
  std::shared_ptr<DiskFile> file;
  int readers = 0;
  bool awaited = false;  // a thread waits for the last reader
  bool moving = false;   // a thread is moving it to the other tier; only that thread may change the buffer and the file
  bool gone = false;     // it is no longer in the store

  [[nodiscard]] TierKind tier() const { return buffer ? TierKind::memory : TierKind::disk; }
  [[nodiscard]] Reservation& room() { return buffer ? buffer->room : file->room; }
};

struct EvictedBefore {
  bool operator()(const StoredValue* one, const StoredValue* other) const {
    if (one->score != other->score) return one->score < other->score;
    return one->number < other->number;
  }
};

struct StoreTier {
  explicit StoreTier(Bytes budget) : ledger(budget) {}

  Ledger ledger;
  // Guarded by the store's lock.
  std::set<StoredValue*, EvictedBefore> at_rest;  // what may be evicted
  std::uint64_t count = 0;                        // these, and those that are leaving
};

inline double score_of(Evict rule, double cost, Bytes bytes) {
  if (rule != Evict::cheapest) return 0;
  // Evicting a value without bytes makes no room.
  return bytes == 0 ? std::numeric_limits<double>::infinity() : cost / static_cast<double>(bytes);
}

}  // namespace reprise::internal
