#include "torch/offload/disk_tier.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "reprise/store/store.h"
#include "torch/offload/value_tiers.h"

namespace reprise::internal {
namespace {

class FileContents final : public TierContents {
 public:
  FileContents(std::shared_ptr<Disk> disk, std::shared_ptr<DiskFile> file)
      : disk_(std::move(disk)), file_(std::move(file)) {}

  void read(const std::string& number, std::span<std::byte> contents) const { disk_->read(number, *file_, contents); }

  [[nodiscard]] Bytes mark_at_rest_after_fork() override {
    file_->room.mark_at_rest_after_fork();
    return file_->room.bytes();
  }

 private:
  const std::shared_ptr<Disk> disk_;  // outlives the file
  const std::shared_ptr<DiskFile> file_;
};

TierCosts costs_of(const DiskSettings& options) {
  TierCosts costs{.name = "disk"};
  if (options.bytes < largest_bytes) costs.capacity = options.bytes;
  if (options.eager) costs.least = 1;
  return costs;
}

}  // namespace

std::shared_ptr<DiskTransferTier> DiskTransferTier::open(const DiskSettings& options) {
  constexpr std::size_t small = 4 << 10, large = 1 << 20;
  std::shared_ptr<DiskTransferTier> tier(new DiskTransferTier(options));
  const auto most = static_cast<std::size_t>(std::max<Bytes>(0, options.bytes - Disk::header_bytes));
  std::vector<std::byte> contents(std::min(large, most), std::byte{0x5a});
  if (!options.eager && !contents.empty()) {
    tier->measure({{std::min(small, most), contents.size()}}, [&](std::size_t bytes) {
      return c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                          c10::DataPtr(contents.data(), c10::Device(c10::DeviceType::CPU)));
    });
  }
  ValueTiers::of_process().add(tier);
  return tier;
}

DiskTransferTier::DiskTransferTier(const DiskSettings& options)
    : TransferTier(c10::Device(c10::DeviceType::CPU), Runs::on_thread, options.bytes, costs_of(options),
                   options.eager ? TierAccount::Learns::nothing : TierAccount::Learns::all),
      disk_(std::make_shared<Disk>(options.files ? *options.files : FileSystem::machine(), options.folder)),
      thread_(std::make_unique<BackgroundThread>(room_)) {}

void DiskTransferTier::report(Summary& summary, const TierTotals& before) const {
  const TierTotals now = totals();
  summary.disk_put_last_step = now.put - before.put;
  summary.disk_got_last_step = now.got - before.got;
  summary.disk_seconds = now.seconds - before.seconds;
  summary.disk_wait_seconds = now.waited - before.waited;
  summary.disk_failures = now.failures;
  summary.last_disk_failure = now.last_failure;
}

bool DiskTransferTier::begin(const Shared& transfer) try {
  thread_->add([this, transfer] { work_on(transfer); });
  return true;
} catch (const std::system_error&) {  // there is no thread to be had: whoever needs it does it
  return false;
}

std::shared_ptr<Disk> DiskTransferTier::disk() const {
  const std::lock_guard lock(mutex_);
  if (!disk_) throw DiskError("[session] the process is about to end: nothing is written, and nothing is read");
  return disk_;
}

std::unique_ptr<TierContents> DiskTransferTier::store(TierTransfer& transfer) {
  const Bytes bytes = static_cast<Bytes>(transfer.bytes) + Disk::header_bytes;
  std::optional<Reservation> room;
  if (!make_room_until([&] { return (room = room_.try_reserve(bytes)).has_value(); })) {
    throw DiskError("[session] option disk.bytes is " + std::to_string(room_.budget()) + ", of which " +
                    std::to_string(room_.used()) + " are taken: " + std::to_string(bytes) + " more do not fit");
  }
  std::shared_ptr<Disk> disk = this->disk();
  const c10::Storage& memory = transfer.memory.storage;
  std::shared_ptr<DiskFile> file =
      disk->write(std::to_string(transfer.number), {static_cast<const std::byte*>(memory.data()), memory.nbytes()},
                  std::move(*room));
  file->room.mark_at_rest();
  return std::make_unique<FileContents>(std::move(disk), std::move(file));
}

void DiskTransferTier::load(TierTransfer& transfer) {
  (void)disk();
  const c10::Storage& memory = transfer.memory.storage;
  static_cast<const FileContents&>(*transfer.contents)
      .read(std::to_string(transfer.number), {static_cast<std::byte*>(memory.mutable_data()), memory.nbytes()});
}

// Files that could not be removed take room until they can.
void DiskTransferTier::reclaim_room() try {
  (void)disk()->remove_leftovers("");
} catch (const DiskError&) {  // they stay counted
}

std::exception_ptr DiskTransferTier::lost_error(const std::string& why) const {
  return std::make_exception_ptr(DiskError(why));
}

void DiskTransferTier::end() noexcept try {
  std::shared_ptr<Disk> last;  // ends without the lock, unless files outlive it
  {
    const std::lock_guard lock(mutex_);
    last = std::exchange(disk_, nullptr);
  }
  lose_all("[session] the process is about to end, and the file is gone");
} catch (...) {  // out of memory: the next process removes them
}

void DiskTransferTier::before_fork() {
  thread_->before_fork();
  if (disk_) disk_->before_fork();
}

void DiskTransferTier::after_fork_in_parent() {
  if (disk_) disk_->after_fork_in_parent();
  thread_->after_fork_in_parent();
}

void DiskTransferTier::after_fork_in_child() {
  if (disk_) disk_->after_fork_in_child();
  thread_->after_fork_in_child();
}

}  // namespace reprise::internal
