// The files of a store.
//
// They are in a folder of the store's own, reprise-store-PID-N in the caller's folder, one file for each value and one
// named `lock`, whose lock the store holds as long as it lives. A folder whose lock is free belongs to nobody any more:
// its process was killed. Whoever starts next removes it.
//
// A file has a header of 32 bytes, four numbers of 8 bytes in the order of the machine, and then the coded bytes:
//   "Reprise1" | serial number of the file | count of coded bytes | XXH3 of what comes before and of the coded bytes
// Files do not outlive their process, so nothing is synced, and a file that was not written completely is no problem:
// nobody knows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "reprise/store/file_system.h"
#include "reprise/trace/trace.h"
#include "store/ledger.h"

namespace reprise {

class Disk;

// A file that was written, or is going to be. It is removed when this object ends.
class DiskFile {
 public:
  DiskFile(Disk&, std::uint64_t serial, Reservation);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Removes the file; what is returned is still reserved. Throws DiskError with this key; then it is one of the disk's
  // leftovers.
  [[nodiscard]] Reservation release(const std::string& key);

  Reservation room;

 private:
  friend class Disk;
  Disk& disk_;
  std::filesystem::path path_;
  const std::uint64_t serial_;
  bool exists_ = false;  // perhaps
};

// Every function may be called from any thread, and throws DiskError with the key it is given.
class Disk {
 public:
  static constexpr Bytes header_bytes = 32;

  // Removes what killed processes left in `folder`, and makes a folder in it.
  Disk(FileSystem&, const std::filesystem::path& folder);
  // Removes the folder, as far as that can be done. No file of it is left by now.
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // `room` is for header_bytes more than `coded` has; it is given back if writing fails.
  [[nodiscard]] std::shared_ptr<DiskFile> write(const std::string& key, std::span<const std::byte> coded,
                                                Reservation room);
  // `out` has as many bytes as were written. Throws also if they are not what was written.
  void read(const std::string& key, const DiskFile&, std::span<std::byte> out);

  // A file that could not be removed is a leftover: it stays reserved until removing it succeeds. Tries that now.
  // Whether there were any.
  bool remove_leftovers(const std::string& key);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  friend class DiskFile;
  struct Leftover {
    std::filesystem::path path;
    Reservation room;
  };

  void make_folder(const std::filesystem::path& inside);

  FileSystem& files_;
  std::filesystem::path folder_;
  std::unique_ptr<FileLock> lock_;
  std::atomic<std::uint64_t> next_serial_ = 0;
  std::mutex mutex_;  // of the leftovers; not held while files are removed
  std::vector<Leftover> leftovers_;
};

}  // namespace reprise
