#include "reprise/store/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

namespace reprise {
namespace {

namespace fs = std::filesystem;

// Calls again as long as a signal interrupts the call.
template <class Call>
auto uninterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

// Returns what an errno means. Not std::strerror: another thread may be using its text.
std::string reason_of(int code) {
  return std::generic_category().message(code);
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
  // Releases the descriptor without closing it.
  void release() { number_ = -1; }
  // After EINTR the descriptor is closed as well: calling again could close another file.
  [[nodiscard]] bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0 || errno == EINTR;
  }

 private:
  int number_;
};

constexpr const char* what_to_do = "name another folder, or remove it if it is not needed";

// Throws if another user can have changed what is open.
void require_own(const char* operation, const fs::path& path, const struct stat& status) {
  const auto refuse = [&](const std::string& why) {
    throw FileError(operation, path, EPERM, fmt::format("{}: {}", why, what_to_do));
  };
  if (status.st_uid != ::geteuid()) {
    refuse(fmt::format("it belongs to user {}, and not to user {}", status.st_uid, ::geteuid()));
  }
  if (status.st_mode & (S_IWGRP | S_IWOTH)) {
    refuse(fmt::format("other users can write to it (its mode is {:o})", status.st_mode & 07777));
  }
}

struct stat status_of(const char* operation, const fs::path& path, const Descriptor& open) {
  struct stat status = {};
  if (::fstat(open.number(), &status) != 0) throw FileError(operation, path, errno);
  return status;
}

// File systems that are mounted by one machine at a time, or, if they are mounted by several, have the same locks
// everywhere. All others, of which NFS, SMB, FUSE, 9P and Lustre may have locks that only one machine knows, are not
// here.
bool is_local_type(std::uint64_t type) {
  constexpr std::uint64_t local[] = {
      0xEF53,      // ext2, ext3, ext4
      0x58465342,  // XFS
      0x9123683E,  // Btrfs
      0xCA451A4E,  // bcachefs
      0xF2F52010,  // F2FS
      0x2FC12FC1,  // ZFS
      0x01021994,  // tmpfs
      0x858458F6,  // ramfs
      0x794C7630,  // overlayfs, whose upper layer is one of these
  };
  return std::ranges::find(local, type) != std::end(local);
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
  Descriptor descriptor_;  // closing it releases the lock
};

class MachineFolder : public Folder {
 public:
  // The descriptor stands for the folder, and can neither list nor sync it: searching it may be all that is allowed.
  MachineFolder(fs::path path, Descriptor descriptor) : path_(std::move(path)), folder_(std::move(descriptor)) {}

  std::vector<FolderEntry> list() override {
    constexpr const char* operation = "list folder";
    Descriptor copy = open_at(operation, ".", path_, O_RDONLY | O_DIRECTORY);
    const std::unique_ptr<DIR, CloseFolder> listing(::fdopendir(copy.number()));
    if (!listing) throw FileError(operation, path_, errno);
    copy.release();
    std::vector<FolderEntry> entries;
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(listing.get());  // NOLINT(concurrency-mt-unsafe): this stream is our own
      if (!entry) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      bool is_folder = entry->d_type == DT_DIR;
      if (entry->d_type == DT_UNKNOWN) {
        struct stat status = {};  // if it vanished since it was listed, it is no folder
        is_folder =
            ::fstatat(folder_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
      }
      entries.push_back({name, is_folder});
    }
    if (errno != 0) throw FileError(operation, path_, errno);
    return entries;
  }

  std::unique_ptr<Folder> make_folder(const std::string& name) override {
    if (::mkdirat(folder_.number(), name.c_str(), 0700) != 0) throw FileError("make folder", path_ / name, errno);
    try {
      return open_folder(name);
    } catch (...) {
      ::unlinkat(folder_.number(), name.c_str(), AT_REMOVEDIR);
      throw;
    }
  }

  std::unique_ptr<Folder> open_folder(const std::string& name) override {
    constexpr const char* operation = "use folder";
    const fs::path path = path_ / name;
    const int number = ::openat(folder_.number(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (number < 0) {
      const int code = errno;
      struct stat status = {};
      if (::fstatat(folder_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) {
        throw FileError(operation, path, code, fmt::format("it is a link: {}", what_to_do));
      }
      throw FileError(operation, path, code);
    }
    Descriptor descriptor(number);
    require_own(operation, path, status_of(operation, path, descriptor));
    return std::make_unique<MachineFolder>(path, std::move(descriptor));
  }

  void remove_folder(const std::string& name) override {
    if (::unlinkat(folder_.number(), name.c_str(), AT_REMOVEDIR) != 0) {
      throw FileError("remove folder", path_ / name, errno);
    }
  }

  void remove_file(const std::string& name) override {
    if (::unlinkat(folder_.number(), name.c_str(), 0) != 0 && errno != ENOENT) {
      throw FileError("remove", path_ / name, errno);
    }
  }

  void rename_file(const std::string& from, const std::string& to) override {
    if (::renameat(folder_.number(), from.c_str(), folder_.number(), to.c_str()) != 0) {
      throw FileError("rename", path_ / from, errno);
    }
  }

  std::unique_ptr<FileLock> try_lock(const std::string& name) override {
    const fs::path path = path_ / name;
    Descriptor file = open_at("make", name, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
    if (uninterrupted([&] { return ::flock(file.number(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) return nullptr;
      throw FileError("lock", path, errno);
    }
    // The previous holder of the lock may have removed the file; then this lock protects nothing.
    if (status_of("lock", path, file).st_nlink == 0) return nullptr;
    return std::make_unique<MachineLock>(std::move(file));
  }

  std::unique_ptr<OpenFile> create(const std::string& name) override {
    const fs::path path = path_ / name;
    return std::make_unique<MachineFile>(path, open_at("make", name, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
  }

  // Opens a pipe without waiting for its other end, and refuses it like everything else that is not a file.
  std::unique_ptr<OpenFile> open(const std::string& name) override {
    constexpr const char* operation = "open";
    const fs::path path = path_ / name;
    Descriptor file = open_at(operation, name, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const struct stat status = status_of(operation, path, file);
    if (!S_ISREG(status.st_mode)) throw FileError(operation, path, EINVAL, "it is no regular file");
    require_own(operation, path, status);
    return std::make_unique<MachineFile>(path, std::move(file));
  }

  void sync() override {
    const Descriptor copy = open_at("sync folder", ".", path_, O_RDONLY | O_DIRECTORY);
    if (::fsync(copy.number()) != 0 && errno != EINVAL && errno != ENOTSUP) {
      throw FileError("sync folder", path_, errno);
    }
  }

  bool is_local() const override {
    struct statfs system = {};
    return ::fstatfs(folder_.number(), &system) == 0 && is_local_type(static_cast<std::uint32_t>(system.f_type));
  }

 private:
  struct CloseFolder {
    void operator()(DIR* listing) const { ::closedir(listing); }
  };

  [[nodiscard]] Descriptor open_at(const char* operation, const std::string& name, const fs::path& path,
                                   int flags) const {
    const int number = uninterrupted([&] { return ::openat(folder_.number(), name.c_str(), flags | O_CLOEXEC, 0600); });
    if (number < 0) throw FileError(operation, path, errno, errno == ELOOP ? "it is a link" : reason_of(errno));
    return Descriptor(number);
  }

  const fs::path path_;  // for errors
  const Descriptor folder_;
};

class Machine : public FileSystem {
 public:
  std::unique_ptr<Folder> open_folder(const fs::path& path) override {
    const int number = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (number < 0) throw FileError("open folder", path, errno);
    return std::make_unique<MachineFolder>(path, Descriptor(number));
  }
};

}  // namespace

FileError::FileError(std::string_view operation, const fs::path& path, int code)
    : FileError(operation, path, code, reason_of(code)) {}

FileError::FileError(std::string_view operation, const fs::path& path, int code, std::string_view reason)
    : Error(fmt::format("cannot {} {}: {}", operation, path.string(), reason)), code_(code) {}

FileSystem& FileSystem::machine() {
  static Machine machine;
  return machine;
}

}  // namespace reprise
