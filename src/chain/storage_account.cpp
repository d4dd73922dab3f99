#include "chain/storage_account.h"

#include <fmt/format.h>

namespace reprise::internal {

void StorageAccount::clear() noexcept {
  bytes_ = 0;
  limit_ = largest_bytes;
  statistics.remembered = 0;
  count_tiers();
}

void StorageAccount::count_tiers() {
  statistics.stored = stored_now();
  statistics.peak_stored = std::max(statistics.peak_stored, statistics.stored);
  statistics.disk = tiers_.on_disk();
  statistics.peak_disk = std::max(statistics.peak_disk, statistics.disk);
}

void StorageAccount::fail_limit(Bytes more, Id layer) const {
  throw ChainError(
      fmt::format("[chain] budget is {} bytes, of which {} are taken: the {} that layer {} needs do not fit", limit_,
                  stored_now(), more, layer));
}

ChainStatistics StorageAccount::statistics_now() const {
  ChainStatistics now = statistics;
  now.stored = stored_now();
  now.disk = tiers_.on_disk();
  now.spare = states_.spare_bytes();
  return now;
}

}  // namespace reprise::internal
