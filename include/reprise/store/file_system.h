// The few things the disk tier asks of a file system. A seam: tests put their own in its place, in which any operation
// can fail, be slow or be cut short.
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

#include "reprise/trace/error.h"

namespace reprise {

// "cannot write /tmp/x/3.value: No space left on device".
class FileError : public Error {
 public:
  // `code` is an errno.
  FileError(std::string_view operation, const std::filesystem::path& path, int code);
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_;
};

// An open file. Its destructor closes it and says nothing about errors.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
  // Appends the first of these bytes, at least one of them, and returns how many.
  [[nodiscard]] virtual std::size_t write(std::span<const std::byte>) = 0;
  // Reads from this place into the first of these bytes and returns how many; 0 at the end of the file.
  [[nodiscard]] virtual std::size_t read(std::uint64_t offset, std::span<std::byte>) = 0;
  // For a file that was written: some file systems tell only now that it did not work.
  virtual void close() = 0;
};

// Held until it is destroyed, at the latest when the process ends, in whatever way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FolderEntry {
  std::string name;
  bool is_folder = false;  // a link to a folder is none
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // For this user only. An error if there is something of that name.
  virtual void make_folder(const std::filesystem::path&) = 0;
  // In any order.
  [[nodiscard]] virtual std::vector<FolderEntry> list(const std::filesystem::path& folder) = 0;
  // A file that is not there is removed already.
  virtual void remove_file(const std::filesystem::path&) = 0;
  // It has to be empty.
  virtual void remove_folder(const std::filesystem::path&) = 0;
  // Makes the file if it is not there. nullptr: somebody else holds its lock, or removed the file meanwhile.
  [[nodiscard]] virtual std::unique_ptr<FileLock> try_lock(const std::filesystem::path& file) = 0;
  // For writing, for this user only. An error if there is something of that name.
  [[nodiscard]] virtual std::unique_ptr<OpenFile> create(const std::filesystem::path&) = 0;
  // For reading.
  [[nodiscard]] virtual std::unique_ptr<OpenFile> open(const std::filesystem::path&) = 0;

  // The one of this machine.
  [[nodiscard]] static FileSystem& machine();
};

}  // namespace reprise
