#include "torch/offload/disk_copy.h"

#include <utility>

#include "reprise/store/store.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"

namespace reprise::internal {

std::shared_ptr<const DiskCopy> DiskCopy::of(std::shared_ptr<ValueDisk> disk, c10::Storage storage) {
  return std::shared_ptr<const DiskCopy>(new DiskCopy(std::move(disk), std::move(storage)));
}

DiskCopy::DiskCopy(std::shared_ptr<ValueDisk> disk, c10::Storage storage)
    : disk_(std::move(disk)), transfer_(disk_->begin_put(std::move(storage))) {}

std::shared_ptr<const TierCopy> ValueDisk::put(c10::Storage storage, const std::optional<c10::Stream>&) {
  Arbiter::after([disk = shared_from_this()] { (void)disk->settle(); });
  return DiskCopy::of(shared_from_this(), std::move(storage));
}

DiskCopy::~DiskCopy() {
  disk_->evict(*transfer_);
  if (disk_.use_count() == 1) Arbiter::discard_all(std::move(disk_));  // its files go with it: not under the lock
}

DiskCopy::State DiskCopy::state() const {
  const std::lock_guard lock(disk_->mutex_);
  return transfer_->state;
}

bool DiskCopy::usable() const {
  return state() != State::lost;
}

bool DiskCopy::is_being_written() const {
  const State now = state();
  return now == State::to_write || now == State::writing;
}

bool DiskCopy::fetched() const {
  const State now = state();
  return now == State::to_read || now == State::reading || now == State::arrived;
}

void DiskCopy::finish_put() const {
  Arbiter::expect_free("a value is written to disk");
  {
    ValueDisk::Lock lock(disk_->mutex_);
    if (transfer_->unwritten()) disk_->finish_writing(*transfer_, lock);
  }
  (void)disk_->settle();
}

void DiskCopy::fetch() const {
  if (state() != State::there) return;
  c10::Storage memory = libtorch::new_storage(transfer_->bytes);
  if (meter::Header* const header = meter::header_of(*memory.unsafeGetStorageImpl())) meter::track(*header);
  disk_->fetch(*transfer_, std::move(memory));
}

void DiskCopy::give_up_fetched() const {
  c10::Storage memory;
  {
    const std::lock_guard lock(disk_->mutex_);
    memory = transfer_->give_up_fetched();
  }
  Arbiter::discard(std::move(memory));
}

c10::Storage DiskCopy::contents() const {
  Arbiter::expect_free("a value is read from disk");
  std::shared_ptr<ValueFile> file;
  {
    ValueDisk::Lock lock(disk_->mutex_);
    disk_->finish_reading(*transfer_, lock);
    if (transfer_->state == State::lost) throw DiskError(transfer_->error);
    if (transfer_->state == State::arrived) {
      transfer_->state = State::there;
      return std::exchange(transfer_->memory, c10::Storage());
    }
    if (transfer_->memory) return transfer_->memory;
    file = transfer_->file;
  }
  return read_here(*file);
}

c10::Storage DiskCopy::read_here(const ValueFile& file) const {
  c10::Storage memory = libtorch::new_storage(transfer_->bytes);
  const Stamp start = Stamp::now();
  try {
    file.read(transfer_->key(), DiskTransfer::bytes_to(memory));
  } catch (const DiskError& error) {
    const std::lock_guard lock(disk_->mutex_);
    disk_->fail(*transfer_, error.what());
    throw;
  }
  const Spent spent = start.since();
  const std::lock_guard lock(disk_->mutex_);
  disk_->account_.done(DiskAccount::Work::get, transfer_->bytes, spent);
  disk_->account_.waited(spent.time);
  return memory;
}

}  // namespace reprise::internal
