// The transfers of a disk: for each copy, what is in memory, what is in its file, and what is to be done next. The disk
// that does it is value_disk.h. Under the lock of the disk, but for what a transfer has from the start.
#pragma once

#include <c10/core/Storage.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "torch/offload/value_files.h"

namespace reprise::internal {

struct DiskTransfer {
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

  // ---- from the start ----
  std::uint64_t number = 0;
  std::size_t bytes = 0;
  // ---- under the lock ----
  c10::Storage memory;
  State state = State::to_write;
  double asked_at = 0;   // for what it is to do next, in microseconds
  bool evicted = false;  // to be removed by whoever is busy with it
  std::shared_ptr<ValueFile> file;
  std::string error;  // if it is lost

  [[nodiscard]] std::string key() const { return std::to_string(number); }
  [[nodiscard]] bool unwritten() const { return state == State::to_write || state == State::writing; }
  // Lets go of what was fetched, or is to be, unless it is being read: returns the memory, which is empty if there is
  // none.
  [[nodiscard]] c10::Storage give_up_fetched();

  [[nodiscard]] static std::span<const std::byte> bytes_in(const c10::Storage&);
  [[nodiscard]] static std::span<std::byte> bytes_to(const c10::Storage&);
};

class DiskTransfers {
 public:
  // A new one, to be written.
  [[nodiscard]] std::shared_ptr<DiskTransfer> add(c10::Storage);
  // nullptr: it is gone.
  [[nodiscard]] std::shared_ptr<DiskTransfer> find(const std::string& key) const;
  [[nodiscard]] std::vector<std::shared_ptr<DiskTransfer>> all() const;
  void remove(const DiskTransfer& transfer) { all_.erase(transfer.number); }

  // The one whose writing ends next if somebody helps: the oldest that is not written, or, while somebody else writes
  // that one, the next. nullptr: all are written.
  [[nodiscard]] std::shared_ptr<DiskTransfer> next_unwritten();
  void evict_written();

  // In the child of a fork: what other threads were busy with, nobody is any more. Returns the bytes of all files.
  [[nodiscard]] Bytes settle_after_fork();

 private:
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<DiskTransfer>> all_;  // whose files may be there, by number
  std::deque<std::shared_ptr<DiskTransfer>> unwritten_;                   // oldest first; some are written by now
};

}  // namespace reprise::internal
