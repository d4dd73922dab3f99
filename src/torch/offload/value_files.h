// The files below the memory of a session: one for each copy on disk, checked (store/disk.h), and together no more
// bytes than the option says.
//
// Any thread. The lock in here comes after all others, and is not held while a file is touched.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "reprise/torch/session.h"
#include "store/disk.h"
#include "store/ledger.h"

namespace reprise::internal {

// A file with contents of a value. It is removed when this object ends.
class ValueFile {
 public:
  ValueFile(std::shared_ptr<Disk>, std::shared_ptr<DiskFile>);

  // As many bytes as were written. Throws DiskError with this number.
  void read(const std::string& number, std::span<std::byte> contents) const;

  // In the child of a fork, before the files are told what is left: returns the bytes that it takes.
  [[nodiscard]] Bytes settle_after_fork();

 private:
  std::shared_ptr<Disk> disk_;  // outlives the file
  std::shared_ptr<DiskFile> file_;
};

class ValueFiles {
 public:
  // Makes a folder in that of the options, and removes what killed processes left there. Throws DiskError.
  explicit ValueFiles(const DiskOffload&);

  [[nodiscard]] Ledger& ledger() { return ledger_; }

  // Room for a file with so many bytes in it. None: there is none at the moment.
  [[nodiscard]] std::optional<Reservation> try_reserve(std::size_t contents);
  // The same; throws DiskError if there is none.
  [[nodiscard]] Reservation reserve(std::size_t contents);
  // Throws DiskError with this number.
  [[nodiscard]] std::shared_ptr<ValueFile> write(const std::string& number, std::span<const std::byte> contents,
                                                 Reservation room);
  // Files that could not be removed take room until they can.
  void remove_leftovers();

  // The process ends: nothing is written any more, and the folder goes with the last file.
  void end();
  [[nodiscard]] bool ended() const;

  // See forks.h. In the child only files with so many bytes are left.
  void lock_for_fork();
  void unlock_in_parent();
  void unlock_in_child(Bytes settled);

 private:
  [[nodiscard]] std::shared_ptr<Disk> disk() const;

  Ledger ledger_;
  mutable std::mutex mutex_;
  std::shared_ptr<Disk> disk_;  // nullptr: the process ends
};

}  // namespace reprise::internal
