// The few operations that the disk tier needs of a file system. This is a seam: tests use a file system of their own,
// in which any operation can fail, be slow or be cut short.
//
// Every function throws FileError, and may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/error.h"

namespace reprise {

// An error of a file operation: "cannot write /tmp/x/3.value: No space left on device".
class REPRISE_EXPORT FileError : public Error {
 public:
  // `code` is an errno.
  FileError(std::string_view operation, const std::filesystem::path& path, int code);
  // The same with a reason that says more than the errno.
  FileError(std::string_view operation, const std::filesystem::path& path, int code, std::string_view reason);
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_;
};

// An open file. Its destructor closes it and ignores errors.
class REPRISE_EXPORT OpenFile {
 public:
  virtual ~OpenFile() = default;
  // Appends at least one of these bytes, from the first on, and returns how many.
  [[nodiscard]] virtual std::size_t write(std::span<const std::byte>) = 0;
  // Reads from this offset into these bytes, from the first on, and returns how many; 0 at the end of the file.
  [[nodiscard]] virtual std::size_t read(std::uint64_t offset, std::span<std::byte>) = 0;
  // Makes sure that what was written survives even the machine. Does nothing where there is no such thing.
  virtual void sync() {}
  // Closes a file that was written. Some file systems report only now that writing failed.
  virtual void close() = 0;
};

// A lock that is held until it is destroyed, at the latest when the process ends, in whatever way.
class REPRISE_EXPORT FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FolderEntry {
  std::string name;
  bool is_folder = false;  // false for a link to a folder
};

// An open folder. Names are those of its entries, without '/', and are looked up in this very folder, whatever its path
// leads to by now; a link is never followed. The destructor closes it and leaves everything in it.
class REPRISE_EXPORT Folder {
 public:
  virtual ~Folder() = default;

  // Returns the entries, in any order.
  [[nodiscard]] virtual std::vector<FolderEntry> list() = 0;
  // Makes a folder for this user only, and opens it. Throws if something of that name exists.
  [[nodiscard]] virtual std::unique_ptr<Folder> make_folder(const std::string& name) = 0;
  // Opens a folder. Throws if it is a link, belongs to another user, or can be written by others.
  [[nodiscard]] virtual std::unique_ptr<Folder> open_folder(const std::string& name) = 0;
  // Removes a folder, which has to be empty.
  virtual void remove_folder(const std::string& name) = 0;
  // Removes a file. Does nothing if it does not exist.
  virtual void remove_file(const std::string& name) = 0;
  // Gives a file another name, in one step: whatever happens, it has one of the two. Replaces a file of the new name.
  virtual void rename_file(const std::string& from, const std::string& to) = 0;
  // Locks a file, and makes it if it does not exist. Null if another process holds its lock, or removed the file
  // meanwhile.
  [[nodiscard]] virtual std::unique_ptr<FileLock> try_lock(const std::string& name) = 0;
  // Creates a file for writing, for this user only. Throws if something of that name exists.
  [[nodiscard]] virtual std::unique_ptr<OpenFile> create(const std::string& name) = 0;
  // Opens a file for reading. Throws if it is no regular file, belongs to another user, or can be written by others.
  [[nodiscard]] virtual std::unique_ptr<OpenFile> open(const std::string& name) = 0;
  // Makes sure that the names of its entries survive even the machine. Does nothing where there is no such thing.
  virtual void sync() {}
  // True if the file system is one of this machine alone, so that every process that can use the file system sees a
  // lock.
  [[nodiscard]] virtual bool is_local() const { return true; }
};

class REPRISE_EXPORT FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Opens a folder of the caller's, which may be a link and belong to anyone.
  [[nodiscard]] virtual std::unique_ptr<Folder> open_folder(const std::filesystem::path&) = 0;

  // Returns the file system of this machine.
  [[nodiscard]] static FileSystem& machine();
};

}  // namespace reprise
