// The disk below the memory of a session: a file for each value, written and read by a thread, one thing after the
// other in the order in which it was asked for, as plans count on it. Each file is checked (store/disk.h), and all
// together have no more bytes than the option says.
//
// After fork() each process has its own: the child reads what its parent wrote, for as long as that is there, and
// writes into a folder of its own.
#pragma once

#include <memory>
#include <string>

#include "store/background_thread.h"
#include "store/disk.h"
#include "torch/offload/disk_settings.h"
#include "torch/offload/transfer_tier.h"

namespace reprise::internal {

class DiskTransferTier final : public TransferTier {
 public:
  // Makes a folder in that of the options, removes what killed processes left there, and measures how fast it is.
  // Throws DiskError.
  [[nodiscard]] static std::shared_ptr<DiskTransferTier> open(const DiskSettings&);

  void report(Summary&, const TierTotals& before) const override;
  [[nodiscard]] std::exception_ptr lost_error(const std::string& why) const override;
  void end() noexcept override;

 private:
  explicit DiskTransferTier(const DiskSettings&);

  bool begin(const Shared&) override;
  [[nodiscard]] std::unique_ptr<TierContents> store(TierTransfer&) override;
  void load(TierTransfer&) override;
  void reclaim_room() override;
  void before_fork() override;
  void after_fork_in_parent() override;
  void after_fork_in_child() override;
  // Throws DiskError if the process ends.
  [[nodiscard]] std::shared_ptr<Disk> disk() const;

  std::shared_ptr<Disk> disk_;                // under the lock of the tier; null: the process ends
  std::unique_ptr<BackgroundThread> thread_;  // ends first: it works on the others
};

}  // namespace reprise::internal
