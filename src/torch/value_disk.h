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
#include "torch/disk_account.h"
#include "torch/disk_transfers.h"
#include "torch/value_files.h"

namespace reprise::internal {

class ValueDisk {
 public:
  // Makes a folder in that of the options, removes what killed processes left there, and measures how fast it is.
  // Throws DiskError.
  [[nodiscard]] static std::shared_ptr<ValueDisk> open(const SessionDisk&);
  ValueDisk(const ValueDisk&) = delete;
  ValueDisk& operator=(const ValueDisk&) = delete;

  // Lets go of memory that has been written. False: there was none.
  bool settle();
  // The same, and if there is none, waits for what is to be written next. False: nothing is. Not under the arbiter's
  // lock.
  [[nodiscard]] bool settle_next();
  // Until nobody writes or reads, and all memory that was written is let go of. Not under the arbiter's lock.
  void settle_all();
  // Lets go of what was read ahead of time and nobody has asked for. False: there is none.
  [[nodiscard]] bool give_up_fetched();
  // The process ends: no file is left, and there will be none. Copies are lost. Not under the arbiter's lock.
  void end() noexcept;

  [[nodiscard]] DiskTerms terms() const;
  [[nodiscard]] DiskTotals totals() const;

  // See forks.h.
  void lock_for_fork();
  void unlock_in_parent();
  void unlock_in_child();

 private:
  friend class DiskCopy;
  using State = DiskTransfer::State;
  using Lock = std::unique_lock<std::mutex>;
  using Work = DiskAccount::Work;
  struct Outcome {
    Spent spent;
    std::string error;  // if it has failed
  };

  explicit ValueDisk(const SessionDisk&);
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
  [[nodiscard]] std::shared_ptr<DiskTransfer> put(c10::Storage);
  void fetch(DiskTransfer&, c10::Storage into);
  void forget(DiskTransfer&);
  [[nodiscard]] std::shared_ptr<ValueFile> write_file(const std::string& number, std::span<const std::byte>);
  void remove_forgotten();

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
