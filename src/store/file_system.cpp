#include "reprise/store/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace reprise {
namespace {

namespace fs = std::filesystem;

// Calls again as long as a signal came in between.
template <class Call>
auto uninterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int number() const { return number_; }
  // After EINTR the descriptor is closed, too: calling again could close somebody else's.
  [[nodiscard]] bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0 || errno == EINTR;
  }

 private:
  int number_;
};

Descriptor open_or_throw(const char* operation, const fs::path& path, int flags) {
  const int number = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0600); });
  if (number < 0) throw FileError(operation, path, errno);
  return Descriptor(number);
}

class MachineFile : public OpenFile {
 public:
  MachineFile(fs::path path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::size_t write(std::span<const std::byte> bytes) override {
    const auto done = uninterrupted([&] { return ::write(descriptor_.number(), bytes.data(), bytes.size()); });
    if (done < 0) throw FileError("write", path_, errno);
    if (done == 0 && !bytes.empty()) throw FileError("write", path_, EIO);  // or we would try for ever
    return static_cast<std::size_t>(done);
  }

  std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) override {
    const auto done = uninterrupted(
        [&] { return ::pread(descriptor_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (done < 0) throw FileError("read", path_, errno);
    return static_cast<std::size_t>(done);
  }

  void sync() override {
    if (uninterrupted([&] { return ::fdatasync(descriptor_.number()); }) != 0) throw FileError("sync", path_, errno);
  }

  void close() override {
    if (!descriptor_.close()) throw FileError("close", path_, errno);
  }

 private:
  fs::path path_;
  Descriptor descriptor_;
};

class MachineLock : public FileLock {
 public:
  explicit MachineLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;  // closing it gives up the lock
};

class Machine : public FileSystem {
 public:
  void make_folder(const fs::path& path) override {
    if (::mkdir(path.c_str(), 0700) != 0) throw FileError("make folder", path, errno);
  }

  std::vector<FolderEntry> list(const fs::path& folder) override {
    std::vector<FolderEntry> entries;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      std::error_code vanished;  // since it was listed: then it is no folder
      const bool is_folder = it->symlink_status(vanished).type() == fs::file_type::directory;
      entries.push_back({it->path().filename().string(), is_folder});
    }
    if (error) throw FileError("list folder", folder, error.value());
    return entries;
  }

  void remove_file(const fs::path& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw FileError("remove", path, errno);
  }

  void remove_folder(const fs::path& path) override {
    if (::rmdir(path.c_str()) != 0) throw FileError("remove folder", path, errno);
  }

  std::unique_ptr<FileLock> try_lock(const fs::path& path) override {
    Descriptor file = open_or_throw("make", path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (uninterrupted([&] { return ::flock(file.number(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) return nullptr;
      throw FileError("lock", path, errno);
    }
    // Whoever held the lock until now may have removed the file; then this is the lock of nothing.
    struct stat status = {};
    if (::fstat(file.number(), &status) != 0) throw FileError("lock", path, errno);
    if (status.st_nlink == 0) return nullptr;
    return std::make_unique<MachineLock>(std::move(file));
  }

  std::unique_ptr<OpenFile> create(const fs::path& path) override {
    return std::make_unique<MachineFile>(path, open_or_throw("make", path, O_WRONLY | O_CREAT | O_EXCL));
  }

  std::unique_ptr<OpenFile> open(const fs::path& path) override {
    return std::make_unique<MachineFile>(path, open_or_throw("open", path, O_RDONLY));
  }
};

}  // namespace

FileError::FileError(std::string_view operation, const fs::path& path, int code)
    : Error(fmt::format("cannot {} {}: {}", operation, path.string(), std::generic_category().message(code))),
      code_(code) {}

void FileSystem::rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw FileError("rename", from, errno);
}

FileSystem& FileSystem::machine() {
  static Machine machine;
  return machine;
}

}  // namespace reprise
