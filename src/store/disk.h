// The files of a store.
//
// They are in a folder of the store's own, reprise-store-BOOT-PID-N in the caller's folder, one file for each value and
// one named `lock`, whose lock the store holds as long as it lives. A folder whose lock is free is abandoned: its
// process was killed, and the next store that starts removes it. The child of a fork holds the lock as well, so that
// what it can still read is not removed when its parent is killed. The child makes a folder of its own when it has
// something to write.
//
// Other users may be able to write to the caller's folder. So a folder of ours is opened once and used by its
// descriptor: what is put in its place afterwards is never read. The folder has to belong to the effective user, and
// others must not be able to write to it; a link is not followed. The caller's folder is opened once as well, but may
// be a link and belong to anyone.
//
// Other machines may be using the caller's folder, and a lock may be known to one machine only: that depends on how
// NFS, SMB, FUSE or Lustre is mounted. BOOT says which run of which machine made a folder, the first digits of Linux's
// boot_id. On a file system that is not known to be local, only folders of the same run are removed; those that were
// left before a restart, or by a process of another machine, stay until a user removes them.
//
// A file has a header of 32 bytes, four numbers of 8 bytes in the order of the machine, and then the coded bytes:
//   "Reprise1" | serial number of the file | count of coded bytes | XXH3 of what comes before and of the coded bytes
// These files do not outlive their process, so nothing is synced, and a file that was not written completely is never
// read. After SIGKILL the files stay until the next store is made in the same place.
//
// Files that are kept are in the folder reprise-kept of the caller's folder, with a lock of the same kind, and stay
// when the store ends. A kept file is written under the name SERIAL.part, synced, and only then named SERIAL.value, so
// that a file of that name is whole; then the folder is synced. It begins with "RepriseK", and a description of the
// value stands before the coded bytes, counted and checked with them: see kept_value.h. What of two files has the
// larger serial number is newer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "reprise/export.h"
#include "reprise/store/file_system.h"
#include "reprise/trace/trace.h"
#include "store/ledger.h"
#include "store/store_forks.h"

namespace reprise::internal {

class Disk;

// A folder for files, which is removed with this object, as far as that succeeds. In the child of a fork it stays:
// there it is the parent's.
class DiskFolder {
 public:
  // Makes it. `path` is that of `inside`, for messages. Throws FileError.
  DiskFolder(std::shared_ptr<Folder> inside, const std::filesystem::path& path);
  // Opens the folder whose files are kept, and makes it if it is missing. The folder stays. Throws FileError;
  // EWOULDBLOCK if another store uses it.
  struct Kept {};
  DiskFolder(std::shared_ptr<Folder> inside, const std::filesystem::path& path, Kept);
  ~DiskFolder();
  DiskFolder(const DiskFolder&) = delete;
  DiskFolder& operator=(const DiskFolder&) = delete;

  [[nodiscard]] Folder& files() const { return *folder_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }  // for messages
  [[nodiscard]] bool ours() const { return maker_ == ProcessId::now(); }

 private:
  const std::shared_ptr<Folder> inside_;
  const ProcessId maker_ = ProcessId::now();
  const bool kept_ = false;
  std::filesystem::path path_;
  std::unique_ptr<Folder> folder_;
  std::unique_ptr<FileLock> lock_;
};

// A file that was written, or is going to be. The file is removed when this object ends, unless a parent process made
// it.
class REPRISE_EXPORT DiskFile {
 public:
  DiskFile(Disk&, std::shared_ptr<const DiskFolder>, std::uint64_t serial, Reservation);
  ~DiskFile();
  DiskFile(DiskFile&&) noexcept;
  DiskFile& operator=(DiskFile&&) = delete;

  [[nodiscard]] std::filesystem::path path() const { return folder_->path() / name_; }  // for messages

  // Removes the file if it is ours, and returns its reservation. Throws DiskError with this key; then the file is one
  // of the disk's leftovers.
  [[nodiscard]] Reservation release(const std::string& key);

  Reservation room;

 private:
  friend class Disk;
  Disk& disk_;
  std::shared_ptr<const DiskFolder> folder_;
  std::string name_;
  const std::uint64_t serial_;
  std::vector<std::byte> description_;  // of a kept file
  bool exists_ = false;                 // perhaps
};

// Every function may be called from any thread, and throws DiskError with the key it is given.
class REPRISE_EXPORT Disk {
 public:
  static constexpr Bytes header_bytes = 32;

  // Removes what killed processes left in `folder`, and makes a folder in it.
  Disk(FileSystem&, const std::filesystem::path& folder, bool keep = false);
  // Requires that all files were removed.
  ~Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  [[nodiscard]] bool keeps() const { return keep_; }
  // False in the child of a fork, as long as it has no folder of its own.
  [[nodiscard]] bool ours() const { return folder_->ours(); }
  // Leaves files in the folder that is kept when their objects end from now on.
  void leave_files() { leave_files_ = true; }

  // `room` is for header_bytes more than `coded` and the description have; it is given back if writing fails. There is
  // a description if files are kept.
  [[nodiscard]] std::shared_ptr<DiskFile> write(const std::string& key, std::span<const std::byte> coded,
                                                Reservation room, std::span<const std::byte> description = {});
  // `out` has as many bytes as were written. Throws also if they are not what was written.
  void read(const std::string& key, const DiskFile&, std::span<std::byte> out);
  // Throws what read() would throw for a file with this many coded bytes, and holds few of them at a time.
  void check(const std::string& key, const DiskFile&, std::size_t coded_bytes);

  // A file that was kept, and is whole by its length and its description.
  struct Found {
    std::uint64_t serial = 0;
    std::filesystem::path path;
    std::vector<std::byte> description;
    std::size_t coded_bytes = 0;
  };
  // Returns what is in the folder that is kept, oldest first, and removes files that were not written completely.
  // Throws DiskError with the name of a file that is damaged, or that is no store's.
  [[nodiscard]] std::vector<Found> found();
  // Removes the kept files without reading them. Throws DiskError with the name of a file that is no store's.
  void remove_kept();
  // Takes over a file that was found.
  [[nodiscard]] std::shared_ptr<DiskFile> adopt(const Found&, Reservation room);

  // Tries to remove the leftovers: files that could not be removed, and stay reserved until that succeeds. Returns true
  // if there were any.
  bool remove_leftovers(const std::string& key);

  // See store_forks.h.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  // Drops the leftovers, which are the parent's.
  void after_fork_in_child();

 private:
  friend class DiskFile;
  // Calls visit(name, serial number, whether it was written completely) for each file of the folder that is kept.
  template <class Visit>
  void visit_kept(const Visit&);
  struct Leftover {
    std::shared_ptr<const DiskFolder> folder;
    std::string name;
    Reservation room;
  };

  // Reads the coded bytes of a file piece by piece, each into what piece(bytes so far) returns.
  using Piece = std::function<std::span<std::byte>(std::size_t done)>;
  void read_pieces(const std::string& key, const DiskFile&, std::size_t coded_bytes, const Piece& piece);

  // Returns the folder to write to. Throws FileError.
  [[nodiscard]] std::shared_ptr<const DiskFolder> folder();

  const std::filesystem::path path_;  // of the caller's folder, for messages
  std::shared_ptr<Folder> inside_;
  const bool keep_;
  std::atomic<bool> leave_files_ = false;
  std::atomic<std::uint64_t> next_serial_ = 0;
  std::mutex mutex_;  // of all below; not held while files are made or removed
  std::shared_ptr<const DiskFolder> folder_;
  std::vector<Leftover> leftovers_;
};

}  // namespace reprise::internal
