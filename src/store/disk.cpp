#include "store/disk.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "reprise/store/store.h"

namespace reprise::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "reprise-store-";
constexpr std::string_view file_suffix = ".value";
constexpr std::string_view part_suffix = ".part";
constexpr const char* kept_name = "reprise-kept";
constexpr const char* lock_name = "lock";

DiskError disk_error(const std::string& key, const std::string& reason) {
  return DiskError(fmt::format("[store] value \"{}\": {}", key, reason));
}

// ---- what is in a file ----------------------------------------------------------------------------------------------

struct Header {
  std::array<char, 8> magic = {'R', 'e', 'p', 'r', 'i', 's', 'e', '1'};
  std::uint64_t serial = 0;
  std::uint64_t coded_bytes = 0;
  std::uint64_t checksum = 0;
  bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == Disk::header_bytes);

// Of a file that is not kept if there is no description.
Header header_of(std::uint64_t serial, std::span<const std::byte> description, std::span<const std::byte> coded) {
  Header header;
  if (!description.empty()) header.magic.back() = 'K';
  header.serial = serial;
  header.coded_bytes = description.size() + coded.size();
  const XXH64_hash_t of_header = XXH3_64bits(&header, offsetof(Header, checksum));
  const XXH64_hash_t so_far =
      description.empty() ? of_header : XXH3_64bits_withSeed(description.data(), description.size(), of_header);
  header.checksum = XXH3_64bits_withSeed(coded.data(), coded.size(), so_far);
  return header;
}

void write_all(OpenFile& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) bytes = bytes.subspan(file.write(bytes));
}

// How many there were.
std::size_t read_all(OpenFile& file, std::uint64_t offset, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t more = file.read(offset + done, bytes.subspan(done));
    if (more == 0) break;
    done += more;
  }
  return done;
}

// ---- folders of the dead --------------------------------------------------------------------------------------------

// Files of a store, and nothing else that somebody may have put there.
void remove_with_files(FileSystem& files, const fs::path& folder) {
  for (const FolderEntry& entry : files.list(folder)) {
    if (!entry.is_folder && entry.name.ends_with(file_suffix)) files.remove_file(folder / entry.name);
  }
  // Last, so that a folder that could not be emptied is found again.
  files.remove_file(folder / lock_name);
  files.remove_folder(folder);
}

// Housekeeping: a folder that cannot be removed (perhaps it is another user's) is left alone.
void remove_folders_of_the_dead(FileSystem& files, const fs::path& inside) try {
  for (const FolderEntry& entry : files.list(inside)) {
    if (!entry.is_folder || !entry.name.starts_with(folder_prefix)) continue;
    const fs::path folder = inside / entry.name;
    try {
      if (const auto lock = files.try_lock(folder / lock_name)) remove_with_files(files, folder);
    } catch (const FileError&) {
    }
  }
} catch (const FileError&) {
}

}  // namespace

// ---- the folder -----------------------------------------------------------------------------------------------------

// Between making the folder and taking its lock, somebody who starts may believe that it belongs to nobody and remove
// it. Then the lock cannot be had, or there is no place for it; and another name is as good.
DiskFolder::DiskFolder(FileSystem& files, const fs::path& inside) : files_(files) {
  static std::atomic<std::uint64_t> next_number = 0;
  for (int attempts_left = 1000;; --attempts_left) {
    path_ = inside / fmt::format("{}{}-{}", folder_prefix, ::getpid(), next_number++);
    bool made = false;
    try {
      files_.make_folder(path_);
      made = true;
      lock_ = files_.try_lock(path_ / lock_name);
      if (lock_) return;
    } catch (const FileError& error) {
      const bool name_is_taken = !made && error.code() == EEXIST;
      const bool was_removed = made && error.code() == ENOENT;
      if ((!name_is_taken && !was_removed) || attempts_left == 0) {
        if (made) {
          try {
            remove_with_files(files_, path_);
          } catch (const FileError&) {  // the first error says more
          }
        }
        throw;
      }
    }
    if (attempts_left == 0) throw FileError("lock", path_ / lock_name, EWOULDBLOCK);
  }
}

DiskFolder::DiskFolder(FileSystem& files, const fs::path& inside, Kept)
    : files_(files), kept_(true), path_(inside / kept_name) {
  try {
    files_.make_folder(path_);
  } catch (const FileError& error) {
    if (error.code() != EEXIST) throw;
  }
  lock_ = files_.try_lock(path_ / lock_name);
  if (!lock_) throw FileError("lock", path_ / lock_name, EWOULDBLOCK);
}

DiskFolder::~DiskFolder() {
  if (!ours() || kept_) return;
  try {
    remove_with_files(files_, path_);
  } catch (const FileError&) {  // once the lock is free, whoever starts next in this place tries again
  }
}

Disk::Disk(FileSystem& files, const fs::path& folder, bool keep) : files_(files), inside_(folder), keep_(keep) {
  remove_folders_of_the_dead(files_, folder);
  try {
    folder_ = keep ? std::make_shared<DiskFolder>(files_, folder, DiskFolder::Kept{})
                   : std::make_shared<DiskFolder>(files_, folder);
  } catch (const FileError& error) {
    if (keep && error.code() == EWOULDBLOCK) {
      throw DiskError(fmt::format("[store] option disk: {} is in use by another store", (folder / kept_name).string()));
    }
    throw DiskError(fmt::format("[store] option disk: {}", error.what()));
  }
}

// In a child two threads may make one at the same time; then one of the two goes again.
std::shared_ptr<const DiskFolder> Disk::folder() {
  const auto present = [this] {
    const std::lock_guard lock(mutex_);
    return folder_;
  }();
  if (present->ours()) return present;
  std::shared_ptr<const DiskFolder> made = std::make_shared<DiskFolder>(files_, inside_);
  const std::lock_guard lock(mutex_);
  if (!folder_->ours()) folder_.swap(made);
  return folder_;
}

void Disk::after_fork_in_child() {
  for (Leftover& leftover : leftovers_) leftover.room.forget_after_fork();
  leftovers_.clear();
  mutex_.unlock();
}

// ---- files ----------------------------------------------------------------------------------------------------------

DiskFile::DiskFile(Disk& disk, std::shared_ptr<const DiskFolder> folder, std::uint64_t serial, Reservation reserved)
    : room(std::move(reserved)),
      disk_(disk),
      folder_(std::move(folder)),
      path_(folder_->path() / fmt::format("{}{}", serial, file_suffix)),
      serial_(serial) {}

DiskFile::DiskFile(DiskFile&& other) noexcept
    : room(std::move(other.room)),
      disk_(other.disk_),
      folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      serial_(other.serial_),
      description_(std::move(other.description_)),
      exists_(std::exchange(other.exists_, false)) {}

DiskFile::~DiskFile() {
  try {
    (void)release("");
  } catch (...) {  // a leftover now
  }
}

Reservation DiskFile::release(const std::string& key) {
  if (std::exchange(exists_, false) && folder_->ours() && !disk_.leave_files_) {
    try {
      disk_.files_.remove_file(path_);
    } catch (const FileError& error) {
      room.settle();  // these do not come back by themselves
      room.hold();    // at least a part of the file is there
      const std::lock_guard lock(disk_.mutex_);
      disk_.leftovers_.push_back({folder_, path_, std::move(room)});
      throw disk_error(key, error.what());
    }
  }
  return std::move(room);
}

bool Disk::remove_leftovers(const std::string& key) {
  std::vector<Leftover> leftovers;
  {
    const std::lock_guard lock(mutex_);
    leftovers.swap(leftovers_);
  }
  for (Leftover& leftover : leftovers) leftover.room.loosen();  // whoever lacks room meanwhile may hope for these
  const bool any = !leftovers.empty();
  while (!leftovers.empty()) {
    try {
      files_.remove_file(leftovers.back().path);
    } catch (const FileError& error) {
      const std::lock_guard lock(mutex_);
      for (Leftover& leftover : leftovers) {
        leftover.room.settle();
        leftovers_.push_back(std::move(leftover));
      }
      throw disk_error(key, error.what());
    }
    leftovers.pop_back();
  }
  return any;
}

std::shared_ptr<DiskFile> Disk::write(const std::string& key, std::span<const std::byte> coded, Reservation room,
                                      std::span<const std::byte> description) {
  const std::uint64_t serial = next_serial_++;
  const Header header = header_of(serial, description, coded);
  std::shared_ptr<DiskFile> file;
  try {
    file = std::make_shared<DiskFile>(*this, folder(), serial, std::move(room));
    file->description_.assign(description.begin(), description.end());
    const fs::path path = file->path();
    if (keep_) file->path_.replace_extension(part_suffix);
    file->exists_ = true;
    const std::unique_ptr<OpenFile> open = files_.create(file->path());
    write_all(*open, std::as_bytes(std::span(&header, 1)));
    write_all(*open, description);
    write_all(*open, coded);
    if (keep_) open->sync();
    open->close();
    if (keep_) {
      files_.rename_file(file->path_, path);
      file->path_ = path;
    }
    file->room.hold();
  } catch (const FileError& error) {
    throw disk_error(key, error.what());
  }
  return file;
}

void Disk::read(const std::string& key, const DiskFile& file, std::span<std::byte> out) {
  try {
    const std::unique_ptr<OpenFile> open = files_.open(file.path());
    Header header;
    const std::size_t of_header = read_all(*open, 0, std::as_writable_bytes(std::span(&header, 1)));
    const std::size_t before = sizeof header + file.description_.size();
    const std::size_t of_value = of_header == sizeof header ? read_all(*open, before, out) : 0;
    if (of_value < out.size() || of_header < sizeof header) {
      throw disk_error(key, fmt::format("cannot read {}: it ends after {} of {} bytes", file.path().string(),
                                        of_header + of_value, sizeof header + out.size()));
    }
    if (header != header_of(file.serial_, file.description_, out)) {
      throw disk_error(
          key, fmt::format("cannot read {}: it is not what was written there (wrong checksum)", file.path().string()));
    }
  } catch (const FileError& error) {
    throw disk_error(key, error.what());
  }
}

// ---- files that were kept -------------------------------------------------------------------------------------------

namespace {

[[noreturn]] void refuse_kept(const fs::path& path, std::string_view why) {
  throw DiskError(fmt::format("[store] cannot use {}: {}", path.string(), why));
}

// Nothing but the length is known of what comes after the description.
Disk::Found look_at(FileSystem& files, const fs::path& path, std::uint64_t serial) {
  const std::unique_ptr<OpenFile> file = files.open(path);
  Header header;
  if (read_all(*file, 0, std::as_writable_bytes(std::span(&header, 1))) < sizeof header) {
    refuse_kept(path, "it ends before the end of its header");
  }
  Header expected;
  expected.magic.back() = 'K';
  if (header.magic != expected.magic) refuse_kept(path, "it was not written by a store that keeps its values");
  if (header.serial != serial) refuse_kept(path, fmt::format("it is number {} by its header", header.serial));

  Disk::Found found{serial, path, {}, 0};
  std::uint64_t length = 0;
  const std::size_t of_length = read_all(*file, sizeof header, std::as_writable_bytes(std::span(&length, 1)));
  if (of_length < sizeof length || length < sizeof length || length > header.coded_bytes || length > (1U << 20)) {
    refuse_kept(path, "it has no description of its value");
  }
  found.description.resize(length);
  if (read_all(*file, sizeof header, found.description) < length) refuse_kept(path, "it ends in its description");
  found.coded_bytes = header.coded_bytes - length;
  std::byte last[1];
  const std::uint64_t end = sizeof header + header.coded_bytes;
  if (file->read(end - 1, last) != 1 || file->read(end, last) != 0) {
    refuse_kept(path, fmt::format("it does not have the {} bytes that its header says", end));
  }
  return found;
}

}  // namespace

template <class Visit>
void Disk::visit_kept(const Visit& visit) {
  const fs::path& folder = folder_->path();
  try {
    for (const FolderEntry& entry : files_.list(folder)) {
      if (entry.name == lock_name) continue;
      const fs::path file = folder / entry.name;
      const std::string_view name = entry.name;
      const std::string_view suffix = name.ends_with(file_suffix) ? file_suffix : part_suffix;
      std::uint64_t serial = 0;
      const char* const end = name.data() + name.size() - std::min(suffix.size(), name.size());
      const auto [parsed, error] = std::from_chars(name.data(), end, serial);
      if (entry.is_folder || !name.ends_with(suffix) || error != std::errc() || parsed != end) {
        refuse_kept(file, "no store has put it there");
      }
      visit(file, serial, suffix == file_suffix);
    }
  } catch (const FileError& error) {
    throw DiskError(fmt::format("[store] option disk: {}", error.what()));
  }
}

std::vector<Disk::Found> Disk::found() {
  std::vector<Found> result;
  visit_kept([&](const fs::path& file, std::uint64_t serial, bool is_whole) {
    next_serial_ = std::max<std::uint64_t>(next_serial_, serial + 1);
    if (is_whole) {
      result.push_back(look_at(files_, file, serial));
    } else {
      files_.remove_file(file);
    }
  });
  std::ranges::sort(result, {}, &Found::serial);
  return result;
}

void Disk::remove_kept() {
  visit_kept([&](const fs::path& file, std::uint64_t, bool) { files_.remove_file(file); });
}

std::shared_ptr<DiskFile> Disk::adopt(const Found& found, Reservation room) {
  auto file = std::make_shared<DiskFile>(*this, folder_, found.serial, std::move(room));
  file->description_ = found.description;
  file->exists_ = true;
  file->room.hold();
  return file;
}

}  // namespace reprise::internal
