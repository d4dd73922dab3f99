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

// A buffer and a file are shared with those who read them at the moment, so that they last until the last one is done.
struct StoredValue {
  std::string key;
  std::uint64_t number = 0;
  double cost = 0;
  Element element = Element::float32;
  Shape shape;
  Bytes plain_bytes = 0;
  const Codec* codec = nullptr;
  Bytes bytes = 0;   // coded
  double score = 0;  // of equal ones the oldest is given up first, otherwise the one with the least

  // What changes, guarded by the store's lock. The value is in memory if it has a buffer, and otherwise on disk. It has
  // both if its file is kept though it was read ahead.
  std::shared_ptr<Buffer> buffer;
  std::shared_ptr<DiskFile> file;
  int readers = 0;
  bool awaited = false;  // somebody waits for the last reader
  bool moving = false;   // somebody is taking it to the other tier, and alone may change the buffer and the file
  bool gone = false;     // it is no longer in the store

  [[nodiscard]] TierKind tier() const { return buffer ? TierKind::memory : TierKind::disk; }
  [[nodiscard]] Reservation& room() { return buffer ? buffer->room : file->room; }
};

struct GivenUpBefore {
  bool operator()(const StoredValue* one, const StoredValue* other) const {
    if (one->score != other->score) return one->score < other->score;
    return one->number < other->number;
  }
};

struct StoreTier {
  explicit StoreTier(Bytes budget) : ledger(budget) {}

  Ledger ledger;
  // Guarded by the store's lock.
  std::set<StoredValue*, GivenUpBefore> at_rest;  // what may be given up
  std::uint64_t count = 0;                        // these, and those that are leaving
};

inline double score_of(GiveUp rule, double cost, Bytes bytes) {
  if (rule != GiveUp::cheapest) return 0;
  // Giving up nothing makes no room.
  return bytes == 0 ? std::numeric_limits<double>::infinity() : cost / static_cast<double>(bytes);
}

}  // namespace reprise::internal
