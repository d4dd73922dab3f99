#include "torch/offload/value_files.h"

#include <utility>

#include "reprise/store/store.h"

namespace reprise::internal {
namespace {

Bytes bytes_of_file(std::size_t contents) {
  return static_cast<Bytes>(contents) + Disk::header_bytes;
}

}  // namespace

// ---- one file ------------------------------------------------------------------------------------------------------

ValueFile::ValueFile(std::shared_ptr<Disk> disk, std::shared_ptr<DiskFile> file)
    : disk_(std::move(disk)), file_(std::move(file)) {}

void ValueFile::read(const std::string& number, std::span<std::byte> contents) const {
  disk_->read(number, *file_, contents);
}

Bytes ValueFile::settle_after_fork() {
  file_->room.settle_after_fork();
  return file_->room.bytes();
}

// ---- all files -----------------------------------------------------------------------------------------------------

ValueFiles::ValueFiles(const DiskOffload& options)
    : ledger_(options.bytes),
      disk_(std::make_shared<Disk>(options.files ? *options.files : FileSystem::machine(), options.folder)) {}

std::shared_ptr<Disk> ValueFiles::disk() const {
  const std::lock_guard lock(mutex_);
  return disk_;
}

std::optional<Reservation> ValueFiles::try_reserve(std::size_t contents) {
  return ledger_.try_reserve(bytes_of_file(contents));
}

Reservation ValueFiles::reserve(std::size_t contents) {
  if (auto room = try_reserve(contents)) return std::move(*room);
  throw DiskError("[session] option disk.bytes is " + std::to_string(ledger_.budget()) + ", of which " +
                  std::to_string(ledger_.used()) + " are taken: " + std::to_string(bytes_of_file(contents)) +
                  " more do not fit");
}

std::shared_ptr<ValueFile> ValueFiles::write(const std::string& number, std::span<const std::byte> contents,
                                             Reservation room) {
  std::shared_ptr<Disk> disk = this->disk();
  if (!disk) throw DiskError("[session] the process is about to end: nothing is written");
  std::shared_ptr<DiskFile> file = disk->write(number, contents, std::move(room));
  file->room.settle();
  return std::make_shared<ValueFile>(std::move(disk), std::move(file));
}

void ValueFiles::remove_leftovers() {
  const std::shared_ptr<Disk> disk = this->disk();
  if (!disk) return;
  try {
    (void)disk->remove_leftovers("");
  } catch (const DiskError&) {  // they stay counted
  }
}

void ValueFiles::end() {
  std::shared_ptr<Disk> last;
  const std::lock_guard lock(mutex_);
  last = std::exchange(disk_, nullptr);
}

bool ValueFiles::ended() const {
  return !disk();
}

// ---- fork ----------------------------------------------------------------------------------------------------------

void ValueFiles::lock_for_fork() {
  mutex_.lock();
  if (disk_) disk_->before_fork();
  ledger_.before_fork();
}

void ValueFiles::unlock_in_parent() {
  ledger_.after_fork_in_parent();
  if (disk_) disk_->after_fork_in_parent();
  mutex_.unlock();
}

void ValueFiles::unlock_in_child(Bytes settled) {
  if (disk_) disk_->after_fork_in_child();
  ledger_.after_fork_in_child(settled);
  mutex_.unlock();
}

}  // namespace reprise::internal
