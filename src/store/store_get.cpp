#include <utility>
#include <vector>

#include "store/store_state.h"

namespace reprise::internal {

// A value that a thread reads. Its buffer or file lasts until the reading ends, whatever happens to the value.
class StoreState::Reading {
 public:
  Reading(StoreState& store, const std::string& key) : store_(store) {
    std::unique_lock lock(store_.mutex_);
    auto found = store_.values_.find(key);
    // The store's thread is reading it from disk: wait for that.
    while (found != store_.values_.end() && found->second->moving && found->second->tier() == TierKind::disk) {
      store_.moved_.wait(lock);
      found = store_.values_.find(key);
    }
    if (found == store_.values_.end()) {
      ++store_.counts_.misses;
      return;
    }
    ++store_.counts_.hits;
    value = found->second;
    buffer = value->buffer;
    file = value->file;
    ++value->readers;
  }

  ~Reading() {
    if (!value) return;
    buffer.reset();
    file.reset();
    const std::lock_guard lock(store_.mutex_);
    if (--value->readers > 0 || !value->awaited) return;
    value->awaited = false;
    for (StoreTier& tier : store_.tiers_) tier.ledger.touch();
  }

  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  Reference value;  // null: not there
  std::shared_ptr<const Buffer> buffer;
  std::shared_ptr<const DiskFile> file;

 private:
  StoreState& store_;
};

std::optional<Array> StoreState::take_over(const std::string& key) {
  Reference value;
  {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    const StoredValue& candidate = *found->second;
    if (!candidate.buffer || candidate.codec != exact_ || candidate.moving || candidate.readers > 0)
      return std::nullopt;
    ++counts_.hits;
    value = remove(found);
  }
  return Array(value->element, value->shape, value->buffer->take_memory());
}

std::optional<Array> StoreState::find(const std::string& key, Then then) {
  if (then == Then::remove) {
    if (auto array = take_over(key)) return array;
  }
  for (;;) {
    Reference value;
    std::optional<Array> array;
    {
      const Reading reading(*this, key);
      if (!reading.value) return std::nullopt;
      value = reading.value;
      array.emplace(decode(*value, reading.buffer.get(), reading.file.get()));
    }
    if (then == Then::keep) return array;

    // Removed only now, so that a value that cannot be read stays. If another thread was faster, the key may have a new
    // value.
    Reference taken;
    const std::lock_guard lock(mutex_);
    if (!value->gone) {
      taken = remove(values_.find(key));
      return array;
    }
    --counts_.hits;
  }
}

void StoreState::check(const std::string& key) {
  const Reading reading(*this, key);
  if (reading.value && reading.file) {
    disk_->check(key, *reading.file, static_cast<std::size_t>(reading.value->bytes));
  }
}

Array StoreState::decode(const StoredValue& value, const Buffer* buffer, const DiskFile* file) {
  if (buffer) return decode(value, buffer->bytes());
  if (value.codec == exact_) {
    Array array(value.element, value.shape);  // no larger than the file: see kept_value()
    disk_->read(value.key, *file, array.data());
    return array;
  }
  if (auto room = tier(TierKind::memory).ledger.try_reserve(value.bytes)) {
    Buffer coded(std::move(*room));
    disk_->read(value.key, *file, coded.bytes());
    return decode(value, coded.bytes());
  }
  // Memory is full. Evicting other values so that one can be read would be worse than some memory more for the caller,
  // who gets an array anyway.
  std::vector<std::byte> coded(static_cast<std::size_t>(value.bytes));
  disk_->read(value.key, *file, coded);
  return decode(value, coded);
}

// What a kept file says about its value may be wrong, so nothing is allocated for it before the codec has checked the
// size.
Array StoreState::decode(const StoredValue& value, std::span<const std::byte> coded) {
  value.codec->check_size(coded, value.element, static_cast<std::size_t>(value.plain_bytes));
  Array array(value.element, value.shape);
  value.codec->decode(coded, value.element, array.data());
  return array;
}

}  // namespace reprise::internal
