#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "store/kept_value.h"
#include "store/store_state.h"

namespace reprise::internal {

PutResult StoreState::put(const std::string& key, const ArrayView& array, const PutOptions& options) {
  if (std::isnan(options.cost)) throw BadOption(fmt::format("[store] value \"{}\": option cost is not a number", key));

  const auto value = std::make_shared<StoredValue>();
  value->key = key;
  value->cost = options.cost;
  value->codec = exact_;
  value->element = array.element();
  value->shape = array.shape();
  value->plain_bytes = static_cast<Bytes>(array.bytes());
  {
    const std::lock_guard lock(mutex_);
    ++counts_.puts;
    value->number = next_number_++;
  }
  if (!remembers({key, value->number, value->plain_bytes, value->cost})) return PutResult::not_remembered;

  const Codec* const asked = options.codec ? options.codec : options_.codec ? options_.codec : exact_;
  const Bytes budget = ledger(TierKind::memory).budget();
  if (asked != exact_) {
    const std::optional<std::size_t> needed = asked->room(array);
    if (needed && *needed <= static_cast<std::size_t>(budget)) {
      auto room = reserve(TierKind::memory, static_cast<Bytes>(*needed), key, true);
      if (!room) return put_on_disk(value, array, *asked, true);
      value->buffer = code(*asked, array, std::move(*room));
      if (value->buffer) {
        value->codec = asked;
        return commit(value, *asked);
      }
    }
  }
  const bool fits_memory = value->plain_bytes <= budget;
  if (fits_memory) {
    if (auto room = reserve(TierKind::memory, value->plain_bytes, key, true)) {
      value->buffer = std::make_shared<Buffer>(std::move(*room));
      std::ranges::copy(array.data(), value->buffer->bytes().begin());
      return commit(value, *asked);
    }
  }
  return put_on_disk(value, array, *asked, fits_memory);
}

bool StoreState::remembers(const Offer& offer) {
  std::shared_ptr<const Remember> rule;
  {
    const std::lock_guard lock(mutex_);
    if (!enabled_) {
      ++counts_.not_remembered;
      if (!values_.contains(offer.key)) absences_.add(offer.key, Absences::Why::switched_off, offer.cost);
      return false;
    }
    rule = remember_;
  }
  if ((*rule)(offer)) return true;

  Reference old;
  const std::lock_guard lock(mutex_);
  ++counts_.not_remembered;
  absences_.add(offer.key, Absences::Why::rule, offer.cost);
  if (const auto found = values_.find(offer.key); found != values_.end()) old = remove(found);
  return false;
}

// Null if the codec cannot code the array.
std::shared_ptr<Buffer> StoreState::code(const Codec& codec, const ArrayView& array, Reservation room) {
  auto buffer = std::make_shared<Buffer>(std::move(room));
  const std::optional<std::size_t> coded = codec.encode(array, buffer->bytes());
  if (!coded) return nullptr;
  if (*coded > buffer->bytes().size()) {
    throw Error(fmt::format("[store] codec {} says it made {} bytes in a room of {}", codec.name(), *coded,
                            buffer->bytes().size()));
  }
  buffer->shrink(static_cast<Bytes>(*coded));
  return buffer;
}

// Writes the caller's array to disk, or refuses it. `fits_memory`: memory has no room only at the moment.
PutResult StoreState::put_on_disk(const Reference& value, const ArrayView& array, const Codec& asked,
                                  bool fits_memory) {
  const Bytes budget = ledger(TierKind::disk).budget();
  if (disk_ && file_bytes(*value, value->plain_bytes) <= budget) {
    auto room = reserve(TierKind::disk, file_bytes(*value, value->plain_bytes), value->key, true);
    if (!room) return refuse(*value);
    value->file = write(*value, array.data(), std::move(*room));
    return commit(value, asked);
  }
  refuse(*value);
  if (fits_memory) return PutResult::refused;
  throw DoesNotFit(fmt::format("[store] value \"{}\": {} bytes do not fit, the budget of memory is {}{}", value->key,
                               value->plain_bytes, ledger(TierKind::memory).budget(),
                               disk_ ? fmt::format(", of the disk {}", budget) : ""));
}

std::shared_ptr<DiskFile> StoreState::write(const StoredValue& value, std::span<const std::byte> coded,
                                            Reservation room) {
  if (!disk_->keeps()) return disk_->write(value.key, coded, std::move(room));
  return disk_->write(value.key, coded, std::move(room), describe_kept(value));
}

Bytes StoreState::file_bytes(const StoredValue& value, Bytes coded) const {
  const Bytes description =
      disk_->keeps() ? kept_description_bytes(value.key, value.shape.size(), value.codec->name()) : 0;
  return coded + Disk::header_bytes + description;
}

PutResult StoreState::refuse(const StoredValue& value) {
  const std::lock_guard lock(mutex_);
  if (!values_.contains(value.key)) absences_.add(value.key, Absences::Why::no_room, value.cost);
  ++counts_.refused;
  return PutResult::refused;
}

// Enters the value into the table, in place of the one that had this key.
PutResult StoreState::commit(const Reference& value, const Codec& asked) {
  value->bytes = value->buffer ? value->buffer->room.bytes() : value->plain_bytes;
  value->score = score_of(options_.evict, value->cost, value->bytes);

  Reference old;
  const std::lock_guard lock(mutex_);
  StoreTier& into = tier(value->tier());
  into.at_rest.insert(value.get());
  try {
    old = std::exchange(values_[value->key], value);
  } catch (...) {
    into.at_rest.erase(value.get());
    throw;
  }
  if (old) retire(*old);
  absences_.remove(value->key);
  ++into.count;
  value->room().mark_at_rest();

  ++counts_.stored_ever;
  if (value->codec != &asked) ++counts_.kept_exactly;
  counts_.before_coding += value->plain_bytes;
  counts_.after_coding += value->bytes;
  return PutResult::stored;
}

}  // namespace reprise::internal
