#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "store/kept_value.h"
#include "store/store_state.h"

namespace reprise::internal {

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

// Nobody else knows this store yet.
void StoreState::find_kept_values() {
  try {
    for (const Disk::Found& found : disk_->found()) {
      const Reference value = kept_value(found.description, found.coded_bytes, found.path, options_.codec);
      auto room = tier(TierKind::disk).ledger.try_reserve(file_bytes(*value, value->bytes));
      if (!room) {
        throw DiskError(fmt::format("[store] option disk.budget is {}: what was kept needs more, from {} on",
                                    options_.disk->budget, found.path.string()));
      }
      value->score = score_of(options_.give_up, value->cost, value->bytes);
      value->file = disk_->adopt(found, std::move(*room));
      value->file->room.settle();
      next_number_ = std::max(next_number_, value->number + 1);
      Reference& place = values_[value->key];
      if (place) retire(*place);  // the newer one of two; its process ended before it had removed the other
      place = value;
      tier(TierKind::disk).at_rest.insert(value.get());
      ++tier(TierKind::disk).count;
    }
  } catch (...) {
    disk_->leave_files();  // they are not ours to remove
    throw;
  }
}

// At the end, as far as it can be done. The child of a fork leaves that to its parent.
void StoreState::write_out() {
  if (disk_->ours()) {
    std::vector<std::string> in_memory;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [key, value] : values_) {
        if (value->buffer) in_memory.push_back(key);
      }
    }
    for (const std::string& key : in_memory) {
      try {
        offload_now(key);
      } catch (const std::exception&) {  // it is lost, as everything in memory is
      }
    }
  }
  disk_->leave_files();
}

}  // namespace reprise::internal
