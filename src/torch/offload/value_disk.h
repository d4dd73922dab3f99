// The disk below the memory of a session: moves copies of values (disk_copy.h) to files and back, on a thread.
//
// Nothing of LibTorch's is allocated, freed or called on the thread, and it waits for nothing but files. So whoever
// allocates may wait for it, whatever locks of others he holds; but nobody waits for it under the arbiter's lock, and
// no file is touched under that one. The lock in here comes after the arbiter, and is held for a few instructions.
// Handles that the thread is done with are let go of by others (`settle`).
//
// After fork() each process has its own: the child reads what its parent wrote, for as long as that is there, and
// writes into a folder of its own.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "reprise/torch/session.h"
#include "store/background_thread.h"
#include "torch/offload/disk_account.h"
#include "torch/offload/disk_transfers.h"
#include "torch/offload/value_files.h"
#include "torch/offload/value_tier.h"

namespace reprise::internal {

class ValueDisk final : public ValueTier, public std::enable_shared_from_this<ValueDisk> {
 public:
  // Makes a folder in that of the options, removes what killed processes left there, and measures how fast it is.
  // Throws DiskError.
  [[nodiscard]] static std::shared_ptr<ValueDisk> open(const DiskOffload&);

  [[nodiscard]] DiskTotals totals() const;

  [[nodiscard]] TierTerms terms() const override;
  [[nodiscard]] std::shared_ptr<const TierCopy> put(c10::Storage, const std::optional<c10::Stream>&) override;
  bool settle() override;
  [[nodiscard]] bool settle_next() override;
  void settle_all() override;
  [[nodiscard]] bool give_up_fetched() override;
  // No file is left, and there will be none. Copies are lost.
  void end() noexcept override;
  void lock_for_fork() override;
  void unlock_in_parent() override;
  void unlock_in_child() override;

 private:
  friend class DiskCopy;
  using State = DiskTransfer::State;
  using Lock = std::unique_lock<std::mutex>;
  using Work = DiskAccount::Work;
  struct Outcome {
    Spent spent;
    std::string error;  // if it has failed
  };

  explicit ValueDisk(const DiskOffload&);
  // What files take, with some that go at once. Throws DiskError.
  void measure();

  // ---- of one transfer, with the lock: since then, by this thread ----
  Spent write(DiskTransfer&, Lock&, const Stamp& since);
  Spent read(DiskTransfer&, Lock&, const Stamp& since);
  Spent remove(DiskTransfer&, Lock&, const Stamp& since);
  [[nodiscard]] Outcome work(Lock&, const Stamp& since, c10::function_ref<void()>);
  void finish_writing(DiskTransfer&, Lock&);
  void finish_reading(DiskTransfer&, Lock&);
  void finish(Work, State, DiskTransfer&, Lock&, Stamp);
  void leave_memory(DiskTransfer&);
  void fail(DiskTransfer&, const std::string& why);

  // ---- without it ----
  void begin(const DiskTransfer&);
  void work_on(const std::string& number);
  [[nodiscard]] std::shared_ptr<DiskTransfer> begin_put(c10::Storage);
  void fetch(DiskTransfer&, c10::Storage into);
  void evict(DiskTransfer&);
  [[nodiscard]] std::shared_ptr<ValueFile> write_file(const std::string& number, std::span<const std::byte>);
  void remove_evicted();

  ValueFiles files_;
  mutable std::mutex mutex_;  // of all below; not held while a file is touched
  DiskAccount account_;
  std::condition_variable changed_;
  DiskTransfers transfers_;
  std::vector<c10::Storage> done_;  // handles to let go of
  std::atomic<bool> any_done_ = false;
  int busy_ = 0;                              // transfers that are being written or read
  int removing_ = 0;                          // files
  std::unique_ptr<BackgroundThread> thread_;  // ends first: it works on the others
};

}  // namespace reprise::internal
