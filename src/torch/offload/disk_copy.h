// A copy of a value on disk (value_disk.h).
//
// It is written straight from the memory of its value, and read straight into memory of LibTorch's: there are no
// buffers, and what is on its way is counted by the meter, because the copy has a handle on it. A copy that is to be
// written can be asked for at once: its contents are still there. Whoever needs a transfer to be over does it himself,
// unless the thread of the disk has begun with it.
#pragma once

#include <c10/core/Storage.h>

#include <memory>

#include "torch/offload/value_disk.h"

namespace reprise::internal {

// When it ends, its file goes.
class DiskCopy final : public TierCopy {
 public:
  // Begins to write what is in this storage, which nobody may write into until that has ended.
  [[nodiscard]] static std::shared_ptr<const DiskCopy> of(std::shared_ptr<ValueDisk>, c10::Storage);
  ~DiskCopy() override;

  [[nodiscard]] bool usable() const override;
  [[nodiscard]] bool is_being_written() const;
  [[nodiscard]] c10::Storage contents() const override;
  [[nodiscard]] bool fetched() const override;

  void finish_put() const override;
  void fetch() const override;
  void give_up_fetched() const override;

 private:
  using State = DiskTransfer::State;

  DiskCopy(std::shared_ptr<ValueDisk>, c10::Storage);
  [[nodiscard]] State state() const;
  [[nodiscard]] c10::Storage read_here(const ValueFile&) const;

  std::shared_ptr<ValueDisk> disk_;  // outlives what is in the transfer
  const std::shared_ptr<DiskTransfer> transfer_;
};

}  // namespace reprise::internal
