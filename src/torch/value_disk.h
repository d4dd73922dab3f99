// The disk below the memory of a session: copies of values in checked files of their own (store/disk.h), written and
// read by a thread.
//
// A copy is written straight from the memory of its value, and read straight into memory of LibTorch's: there are no
// buffers, and what is on its way is counted by the meter, because the copy has a handle on it. A copy that is to be
// written can be asked for at once: its contents are still there. Whoever needs a transfer to be over does it himself,
// unless the thread has begun with it.
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

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "reprise/torch/session.h"
#include "store/background_thread.h"
#include "store/disk.h"
#include "torch/tiers.h"
#include "torch/value_copy.h"

namespace reprise::internal {

class ValueDisk;

// One copy. When it ends, its file goes.
class DiskCopy final : public ValueCopy {
 public:
  struct Transfer;
  enum class State : std::uint8_t {
    to_write,  // the memory has the contents, as long as they are not written
    writing,
    there,    // only the file has them
    to_read,  // into the memory
    reading,
    arrived,  // the memory has the contents, and so has the file
    lost,
    to_remove,  // nobody wants it any more
  };
  DiskCopy(std::shared_ptr<ValueDisk>, std::shared_ptr<Transfer>);
  ~DiskCopy() override;

  // False: it could not be written, or not be read. There are no contents to be had from it.
  [[nodiscard]] bool usable() const;
  [[nodiscard]] bool is_being_written() const;
  [[nodiscard]] c10::Storage contents() const override;
  [[nodiscard]] bool fetched() const override;

  // Until it is written, or turns out to be of no use. Not under the arbiter's lock.
  void finish_writing() const;
  // Begins to read it, into new memory. Throws BudgetError. Not under the arbiter's lock.
  void fetch() const;
  // Nobody counts any more on what was fetched.
  void give_up_fetched() const;

 private:
  std::shared_ptr<ValueDisk> disk_;  // outlives what is in the transfer
  const std::shared_ptr<Transfer> transfer_;
};

class ValueDisk : public std::enable_shared_from_this<ValueDisk> {
 public:
  // Makes a folder in that of the options, removes what killed processes left there, and measures how fast it is.
  // Throws DiskError.
  [[nodiscard]] static std::shared_ptr<ValueDisk> open(const SessionDisk&);
  ~ValueDisk();
  ValueDisk(const ValueDisk&) = delete;
  ValueDisk& operator=(const ValueDisk&) = delete;

  // Copies what is in this storage, which nobody may write into until it is written.
  [[nodiscard]] std::shared_ptr<const DiskCopy> put(c10::Storage);

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

  // All that was done so far.
  struct Totals {
    Bytes put = 0, got = 0;
    double seconds = 0;  // of writing and reading, whoever did it
    double waited = 0;   // of them, and of waiting for them, what others than the thread of the disk have spent
    std::int64_t failures = 0;
    std::string last_failure;
  };
  [[nodiscard]] Totals totals() const;

  // See forks.h.
  void lock_for_fork();
  void unlock_in_parent();
  void unlock_in_child();

 private:
  friend class DiskCopy;
  using Transfer = DiskCopy::Transfer;
  using State = DiskCopy::State;
  using Lock = std::unique_lock<std::mutex>;

  explicit ValueDisk(const SessionDisk&);
  void take_for_free();
  void measure();

  // ---- of one transfer, with the lock ----
  void begin(Transfer&, bool to_disk);
  void work_on(const std::string& number);
  void write(Transfer&, Lock&);
  void read(Transfer&, Lock&);
  void wait_while(const Transfer&, State, Lock&);
  void leave_memory(Transfer&);
  void fail(Transfer&, const std::string& why);
  void note(double& rate, double of_file, std::size_t bytes, double microseconds);
  void remove(Transfer&, Lock&);

  void count_wait(double start);

  // ---- without it ----
  [[nodiscard]] std::shared_ptr<Disk> files() const;
  void forget(Transfer&);
  [[nodiscard]] std::shared_ptr<DiskFile> write_file(const std::string& number, std::span<const std::byte>);
  void remove_forgotten();

  Ledger ledger_;
  mutable std::mutex mutex_;     // of all below; not held while a file is touched
  std::shared_ptr<Disk> files_;  // nullptr: the process ends
  std::condition_variable changed_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Transfer>> transfers_;  // all whose files may be there
  std::deque<std::shared_ptr<Transfer>> unwritten_;                         // oldest first; some are written by now
  std::vector<c10::Storage> done_;                                          // handles to let go of
  std::atomic<bool> any_done_ = false;
  int busy_ = 0;  // transfers that are being written or read
  std::uint64_t next_ = 0;
  bool free_ = false;  // whatever it costs
  DiskTerms terms_;
  Totals totals_;
  std::unique_ptr<BackgroundThread> thread_;
};

}  // namespace reprise::internal
