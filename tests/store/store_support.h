// What tests of the store put in the place of the machine and of codecs: to look, to hold things up, to make them fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "reprise/store/store.h"
#include "support/temporary_folder.h"

namespace reprise::testing {

// ---- a file system --------------------------------------------------------------------------------------------------

enum class FileOperation {
  make_folder,
  list,
  remove_file,
  remove_folder,
  lock,
  create,
  open,
  write,
  read,
  close,
  sync,
  rename,
  open_folder
};

// The machine's, with a hook before every operation and an account of what is on disk.
class WatchedFiles : public FileSystem {
 public:
  // Called before every operation, from any thread: may throw a FileError in its place, or wait.
  std::function<void(FileOperation, const std::filesystem::path&)> before = [](auto, auto&) {};
  // A write or a read does not do more than this at once.
  std::size_t most_at_once = SIZE_MAX;

  [[nodiscard]] int count(FileOperation operation) const { return counts_[static_cast<int>(operation)]; }
  // Bytes of all files that were created and not removed: never less than there are.
  [[nodiscard]] Bytes bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  [[nodiscard]] Bytes peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

  // False: as if other machines could use the folder as well.
  bool local = true;

  std::unique_ptr<Folder> open_folder(const std::filesystem::path& path) override {
    enter(FileOperation::open_folder, path);
    return std::make_unique<WatchedFolder>(*this, path, machine().open_folder(path));
  }

 private:
  class File : public OpenFile {
   public:
    File(WatchedFiles& files, std::filesystem::path path, std::unique_ptr<OpenFile> file)
        : files_(files), path_(std::move(path)), file_(std::move(file)) {}
    std::size_t write(std::span<const std::byte> bytes) override {
      files_.enter(FileOperation::write, path_);
      bytes = bytes.first(std::min(bytes.size(), files_.most_at_once));
      files_.grow(path_, static_cast<Bytes>(bytes.size()));
      const std::size_t done = file_->write(bytes);
      files_.grow(path_, static_cast<Bytes>(done) - static_cast<Bytes>(bytes.size()));
      return done;
    }
    std::size_t read(std::uint64_t offset, std::span<std::byte> bytes) override {
      files_.enter(FileOperation::read, path_);
      return file_->read(offset, bytes.first(std::min(bytes.size(), files_.most_at_once)));
    }
    void sync() override {
      files_.enter(FileOperation::sync, path_);  // and nothing else: no test ends the machine
    }
    void close() override {
      files_.enter(FileOperation::close, path_);
      file_->close();
    }

   private:
    WatchedFiles& files_;
    std::filesystem::path path_;
    std::unique_ptr<OpenFile> file_;
  };

  class WatchedFolder : public Folder {
   public:
    WatchedFolder(WatchedFiles& files, std::filesystem::path path, std::unique_ptr<Folder> folder)
        : files_(files), path_(std::move(path)), folder_(std::move(folder)) {}
    std::vector<FolderEntry> list() override {
      files_.enter(FileOperation::list, path_);
      return folder_->list();
    }
    std::unique_ptr<Folder> make_folder(const std::string& name) override {
      files_.enter(FileOperation::make_folder, path_ / name);
      return std::make_unique<WatchedFolder>(files_, path_ / name, folder_->make_folder(name));
    }
    std::unique_ptr<Folder> open_folder(const std::string& name) override {
      files_.enter(FileOperation::open_folder, path_ / name);
      return std::make_unique<WatchedFolder>(files_, path_ / name, folder_->open_folder(name));
    }
    void remove_folder(const std::string& name) override {
      files_.enter(FileOperation::remove_folder, path_ / name);
      folder_->remove_folder(name);
    }
    void remove_file(const std::string& name) override {
      files_.enter(FileOperation::remove_file, path_ / name);
      folder_->remove_file(name);
      files_.erase(path_ / name);
    }
    void rename_file(const std::string& from, const std::string& to) override {
      files_.enter(FileOperation::rename, path_ / from);
      folder_->rename_file(from, to);
      files_.renamed(path_ / from, path_ / to);
    }
    std::unique_ptr<FileLock> try_lock(const std::string& name) override {
      files_.enter(FileOperation::lock, path_ / name);
      return folder_->try_lock(name);
    }
    std::unique_ptr<OpenFile> create(const std::string& name) override {
      files_.enter(FileOperation::create, path_ / name);
      return std::make_unique<File>(files_, path_ / name, folder_->create(name));
    }
    std::unique_ptr<OpenFile> open(const std::string& name) override {
      files_.enter(FileOperation::open, path_ / name);
      return std::make_unique<File>(files_, path_ / name, folder_->open(name));
    }
    void sync() override { files_.enter(FileOperation::sync, path_); }  // as that of a file
    bool is_local() const override { return files_.local; }

   private:
    WatchedFiles& files_;
    std::filesystem::path path_;
    std::unique_ptr<Folder> folder_;
  };

  void enter(FileOperation operation, const std::filesystem::path& path) {
    ++counts_[static_cast<int>(operation)];
    before(operation, path);
  }
  void erase(const std::filesystem::path& path) {
    const std::lock_guard lock(mutex_);
    bytes_ -= files_[path];
    files_.erase(path);
  }
  void renamed(const std::filesystem::path& from, const std::filesystem::path& to) {
    const std::lock_guard lock(mutex_);
    files_[to] = files_[from];
    files_.erase(from);
  }
  void grow(const std::filesystem::path& path, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    files_[path] += bytes;
    bytes_ += bytes;
    peak_ = std::max(peak_, bytes_);
  }

  std::atomic<int> counts_[13] = {};
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Bytes> files_;
  Bytes bytes_ = 0;
  Bytes peak_ = 0;
};

// ---- codecs ---------------------------------------------------------------------------------------------------------

// Leaves out the zeros at the end. Where its rooms are odd, they are larger than the array; arrays of three elements it
// refuses at once, and those that begin with the byte 0xEE when it sees that.
class TrimCodec : public Codec {
 public:
  explicit TrimCodec(std::size_t room_factor = 1, std::size_t room_more = 0) : factor_(room_factor), more_(room_more) {}

  std::string_view name() const override { return "trim"; }
  std::string_view summary() const override { return "without the zeros at the end"; }
  bool exact() const override { return true; }
  std::optional<std::size_t> room(const ArrayView& array) const override {
    if (array.elements() == 3) return std::nullopt;
    return array.bytes() * factor_ + more_;
  }
  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    EXPECT_EQ(room.size(), array.bytes() * factor_ + more_);
    std::ranges::fill(room, std::byte{0x5A});  // all of it is ours
    if (array.bytes() > 0 && array.data()[0] == std::byte{0xEE}) return std::nullopt;
    std::size_t bytes = array.bytes();
    while (bytes > 0 && array.data()[bytes - 1] == std::byte{0}) --bytes;
    std::ranges::copy(array.data().first(bytes), room.begin());
    return bytes;
  }
  void decode(std::span<const std::byte> coded, Element, std::span<std::byte> out) const override {
    if (coded.size() > out.size()) throw Error("[trim] more bytes than the array has");
    std::ranges::fill(std::ranges::copy(coded, out.begin()).out, out.end(), std::byte{0});
  }

 private:
  std::size_t factor_, more_;
};

// As another codec, with a hook before it begins: `encoding` and `decoding` may wait or throw.
class HookedCodec : public Codec {
 public:
  explicit HookedCodec(const Codec& codec) : codec_(codec) {}
  std::function<void()> encoding = [] {}, decoding = [] {};

  std::string_view name() const override { return "hooked"; }
  std::string_view summary() const override { return "for tests"; }
  bool exact() const override { return codec_.exact(); }
  std::optional<std::size_t> room(const ArrayView& array) const override { return codec_.room(array); }
  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    encoding();
    return codec_.encode(array, room);
  }
  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    decoding();
    codec_.decode(coded, element, out);
  }

 private:
  const Codec& codec_;
};

// ---- threads --------------------------------------------------------------------------------------------------------

// Holds up the threads that pass, until it is opened. Open at first.
class Gate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
  }
  // Until this many are held up.
  void await(int many = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= many && !open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int waiting_ = 0;
};

// ---- values ---------------------------------------------------------------------------------------------------------

// Numbers that differ for different seeds, and no zeros.
inline std::vector<float> numbers(std::size_t count, int seed = 0) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(seed * 1000) + static_cast<float>(i) + 0.5f;
  return numbers;
}

inline bool in_memory(const Store& store, const Key& key) {
  return store.contains(key) && store.describe(key).tier == TierKind::memory;
}
inline bool on_disk(const Store& store, const Key& key) {
  return store.contains(key) && store.describe(key).tier == TierKind::disk;
}

// The message of what this throws.
template <class Thrown, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Thrown& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// ---- options and sizes ----------------------------------------------------------------------------------------------

inline std::vector<Key> keys(std::initializer_list<Key> keys) {
  return keys;
}

inline constexpr Bytes file_header = 32;  // of a file

// Room for this many arrays of ten floats.
constexpr Bytes tens(int many) {
  return many * 40;
}
constexpr Bytes files_of_ten(int many) {
  return many * (40 + file_header);
}

inline StoreOptions with_memory(Bytes memory, Evict rule = Evict::oldest) {
  return {.memory = memory, .remember = remember::all(), .evict = rule};
}

inline StoreOptions with_both_tiers(const TemporaryFolder& folder, Bytes memory, Bytes disk = largest_bytes,
                                    Evict rule = Evict::oldest) {
  StoreOptions options = with_memory(memory, rule);
  options.disk = DiskTier{.folder = folder.path(), .budget = disk};
  return options;
}

// ---- what is on disk, and what fails there --------------------------------------------------------------------------

// Folders of stores.
inline std::vector<std::filesystem::path> store_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) found.push_back(entry.path());
  return found;
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

// Fails the next operations of this kind.
inline void fail_next(WatchedFiles& files, FileOperation kind, int code, int times = 1) {
  files.before = [&files, kind, code, left = times](FileOperation operation,
                                                    const std::filesystem::path& path) mutable {
    if (operation == kind && left > 0) {
      --left;
      throw FileError("test", path, code);
    }
  };
}

}  // namespace reprise::testing
