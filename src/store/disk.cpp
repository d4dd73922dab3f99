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
#include <fstream>
#include <utility>

#include "reprise/store/store.h"

namespace reprise::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "reprise-store-";
constexpr const char* boot_file = "/proc/sys/kernel/random/boot_id";
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

// Of a file that is not kept if there is no description. The checksum is that of what comes before the coded bytes,
// and the seed of theirs.
Header header_before(std::uint64_t serial, std::span<const std::byte> description, std::size_t coded_bytes) {
  Header header;
  if (!description.empty()) header.magic.back() = 'K';
  header.serial = serial;
  header.coded_bytes = description.size() + coded_bytes;
  header.checksum = XXH3_64bits(&header, offsetof(Header, checksum));
  if (!description.empty()) {
    header.checksum = XXH3_64bits_withSeed(description.data(), description.size(), header.checksum);
  }
  return header;
}

Header header_of(std::uint64_t serial, std::span<const std::byte> description, std::span<const std::byte> coded) {
  Header header = header_before(serial, description, coded.size());
  header.checksum = XXH3_64bits_withSeed(coded.data(), coded.size(), header.checksum);
  return header;
}

void write_all(OpenFile& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) bytes = bytes.subspan(file.write(bytes));
}

// Returns the number of bytes read: fewer than asked for at the end of the file.
std::size_t read_all(OpenFile& file, std::uint64_t offset, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t more = file.read(offset + done, bytes.subspan(done));
    if (more == 0) break;
    done += more;
  }
  return done;
}

// ---- folders of killed processes ------------------------------------------------------------------------------------

// Returns how the names of folders begin that were made since this machine was started. Empty if that is not known.
const std::string& prefix_of_this_boot() {
  static const std::string prefix = [] {
    std::string id;
    std::getline(std::ifstream(boot_file), id, '-');
    return id.empty() ? std::string() : fmt::format("{}{}-", folder_prefix, id);
  }();
  return prefix;
}

// Removes the files of a store, and nothing else that may be there, and then the folder.
void remove_with_files(Folder& inside, const std::string& name, Folder& folder) {
  for (const FolderEntry& entry : folder.list()) {
    if (!entry.is_folder && entry.name.ends_with(file_suffix)) folder.remove_file(entry.name);
  }
  // Last, so that a folder that could not be emptied is found again.
  folder.remove_file(lock_name);
  inside.remove_folder(name);
}

// Removes abandoned folders. A folder that cannot be removed (perhaps it is another user's) is left alone.
void remove_abandoned_folders(Folder& inside) try {
  const bool local = inside.is_local();
  const std::string& of_this_boot = prefix_of_this_boot();
  for (const FolderEntry& entry : inside.list()) {
    if (!entry.is_folder || !entry.name.starts_with(folder_prefix)) continue;
    if (!local && (of_this_boot.empty() || !entry.name.starts_with(of_this_boot))) continue;
    try {
      const std::unique_ptr<Folder> folder = inside.open_folder(entry.name);
      if (const auto lock = folder->try_lock(lock_name)) remove_with_files(inside, entry.name, *folder);
    } catch (const FileError&) {
    }
  }
} catch (const FileError&) {
}

}  // namespace

// ---- the folder -----------------------------------------------------------------------------------------------------

// Between making the folder and taking its lock, a store that starts may take the folder for abandoned and remove it.
// Then locking fails, and another name is tried.
DiskFolder::DiskFolder(std::shared_ptr<Folder> inside, const fs::path& path) : inside_(std::move(inside)) {
  static std::atomic<std::uint64_t> next_number = 0;
  const std::string_view prefix = prefix_of_this_boot().empty() ? folder_prefix : prefix_of_this_boot();
  for (int attempts_left = 1000;; --attempts_left) {
    const std::string name = fmt::format("{}{}-{}", prefix, ::getpid(), next_number++);
    path_ = path / name;
    folder_.reset();
    try {
      folder_ = inside_->make_folder(name);
      lock_ = folder_->try_lock(lock_name);
      if (lock_) return;
    } catch (const FileError& error) {
      const bool name_is_taken = !folder_ && error.code() == EEXIST;
      const bool was_removed = error.code() == ENOENT;
      if ((!name_is_taken && !was_removed) || attempts_left == 0) {
        if (folder_) {
          try {
            remove_with_files(*inside_, name, *folder_);
          } catch (const FileError&) {  // the first error says more
          }
        }
        throw;
      }
    }
    if (attempts_left == 0) throw FileError("lock", path_ / lock_name, EWOULDBLOCK);
  }
}

DiskFolder::DiskFolder(std::shared_ptr<Folder> inside, const fs::path& path, Kept)
    : inside_(std::move(inside)), kept_(true), path_(path / kept_name) {
  try {
    folder_ = inside_->make_folder(kept_name);
    inside_->sync();
  } catch (const FileError& error) {
    if (folder_ || error.code() != EEXIST) throw;
    folder_ = inside_->open_folder(kept_name);
  }
  lock_ = folder_->try_lock(lock_name);
  if (!lock_) throw FileError("lock", path_ / lock_name, EWOULDBLOCK);
}

DiskFolder::~DiskFolder() {
  if (!ours() || kept_) return;
  try {
    remove_with_files(*inside_, path_.filename().string(), *folder_);
  } catch (const FileError&) {  // the next store that starts in this place tries again
  }
}

Disk::Disk(FileSystem& files, const fs::path& folder, bool keep) : path_(folder), keep_(keep) {
  try {
    inside_ = files.open_folder(folder);
    remove_abandoned_folders(*inside_);
    folder_ = keep ? std::make_shared<DiskFolder>(inside_, path_, DiskFolder::Kept{})
                   : std::make_shared<DiskFolder>(inside_, path_);
  } catch (const FileError& error) {
    if (keep && error.code() == EWOULDBLOCK) {
      throw DiskError(fmt::format("[store] option disk: {} is in use by another store", (folder / kept_name).string()));
    }
    throw DiskError(fmt::format("[store] option disk: {}", error.what()));
  }
}

// In a child two threads may make a folder at the same time; then one of the two is removed again.
std::shared_ptr<const DiskFolder> Disk::folder() {
  const auto present = [this] {
    const std::lock_guard lock(mutex_);
    return folder_;
  }();
  if (present->ours()) return present;
  std::shared_ptr<const DiskFolder> made = std::make_shared<DiskFolder>(inside_, path_);
  const std::lock_guard lock(mutex_);
  if (!folder_->ours()) folder_.swap(made);
  return folder_;
}

void Disk::after_fork_in_child() {
  for (Leftover& leftover : leftovers_) leftover.room.detach_after_fork();
  leftovers_.clear();
  mutex_.unlock();
}

// ---- files ----------------------------------------------------------------------------------------------------------

DiskFile::DiskFile(Disk& disk, std::shared_ptr<const DiskFolder> folder, std::uint64_t serial, Reservation reserved)
    : room(std::move(reserved)),
      disk_(disk),
      folder_(std::move(folder)),
      name_(fmt::format("{}{}", serial, file_suffix)),
      serial_(serial) {}

DiskFile::DiskFile(DiskFile&& other) noexcept
    : room(std::move(other.room)),
      disk_(other.disk_),
      folder_(std::move(other.folder_)),
      name_(std::move(other.name_)),
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
      folder_->files().remove_file(name_);
    } catch (const FileError& error) {
      room.mark_at_rest();  // these do not come back by themselves
      room.hold();          // at least a part of the file is there
      const std::lock_guard lock(disk_.mutex_);
      disk_.leftovers_.push_back({folder_, name_, std::move(room)});
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
  for (Leftover& leftover : leftovers) leftover.room.mark_in_transit();  // a thread that lacks room may wait for these
  const bool any = !leftovers.empty();
  while (!leftovers.empty()) {
    try {
      leftovers.back().folder->files().remove_file(leftovers.back().name);
    } catch (const FileError& error) {
      const std::lock_guard lock(mutex_);
      for (Leftover& leftover : leftovers) {
        leftover.room.mark_at_rest();
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
    Folder& files = file->folder_->files();
    const std::string name = file->name_;
    if (keep_) file->name_ = fmt::format("{}{}", serial, part_suffix);
    file->exists_ = true;
    const std::unique_ptr<OpenFile> open = files.create(file->name_);
    write_all(*open, std::as_bytes(std::span(&header, 1)));
    write_all(*open, description);
    write_all(*open, coded);
    if (keep_) open->sync();
    open->close();
    if (keep_) {
      files.rename_file(file->name_, name);
      file->name_ = name;
      files.sync();
    }
    file->room.hold();
  } catch (const FileError& error) {
    throw disk_error(key, error.what());
  }
  return file;
}

void Disk::read(const std::string& key, const DiskFile& file, std::span<std::byte> out) {
  read_pieces(key, file, out.size(), [out](std::size_t done) { return out.subspan(done); });
}

void Disk::check(const std::string& key, const DiskFile& file, std::size_t coded_bytes) {
  std::vector<std::byte> piece(std::min<std::size_t>(coded_bytes, 1 << 20));
  read_pieces(key, file, coded_bytes,
              [&](std::size_t done) { return std::span(piece).first(std::min(piece.size(), coded_bytes - done)); });
}

void Disk::read_pieces(const std::string& key, const DiskFile& file, std::size_t coded_bytes, const Piece& piece) {
  try {
    const std::unique_ptr<OpenFile> open = file.folder_->files().open(file.name_);
    Header header;
    std::size_t done = read_all(*open, 0, std::as_writable_bytes(std::span(&header, 1)));
    bool whole = done == sizeof header;
    const std::size_t before = sizeof header + file.description_.size();
    Header expected = header_before(file.serial_, file.description_, coded_bytes);
    XXH3_state_t checksum;
    XXH3_64bits_reset_withSeed(&checksum, expected.checksum);
    for (std::size_t of_value = 0; whole && of_value < coded_bytes;) {
      const std::span<std::byte> into = piece(of_value);
      const std::size_t more = read_all(*open, before + of_value, into);
      XXH3_64bits_update(&checksum, into.data(), more);
      of_value += more;
      done += more;
      whole = more == into.size();
    }
    if (!whole) {
      throw disk_error(key, fmt::format("cannot read {}: it ends after {} of {} bytes", file.path().string(), done,
                                        sizeof header + coded_bytes));
    }
    expected.checksum = XXH3_64bits_digest(&checksum);
    if (header != expected) {
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
Disk::Found look_at(const DiskFolder& folder, const std::string& name, std::uint64_t serial) {
  const fs::path path = folder.path() / name;
  const std::unique_ptr<OpenFile> file = folder.files().open(name);
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
  try {
    for (const FolderEntry& entry : folder_->files().list()) {
      if (entry.name == lock_name) continue;
      const std::string_view name = entry.name;
      const std::string_view suffix = name.ends_with(file_suffix) ? file_suffix : part_suffix;
      std::uint64_t serial = 0;
      const char* const end = name.data() + name.size() - std::min(suffix.size(), name.size());
      const auto [parsed, error] = std::from_chars(name.data(), end, serial);
      if (entry.is_folder || !name.ends_with(suffix) || error != std::errc() || parsed != end) {
        refuse_kept(folder_->path() / entry.name, "no store has put it there");
      }
      visit(entry.name, serial, suffix == file_suffix);
    }
  } catch (const FileError& error) {
    throw DiskError(fmt::format("[store] option disk: {}", error.what()));
  }
}

std::vector<Disk::Found> Disk::found() {
  std::vector<Found> result;
  visit_kept([&](const std::string& name, std::uint64_t serial, bool is_whole) {
    next_serial_ = std::max<std::uint64_t>(next_serial_, serial + 1);
    if (is_whole) {
      result.push_back(look_at(*folder_, name, serial));
    } else {
      folder_->files().remove_file(name);
    }
  });
  std::ranges::sort(result, {}, &Found::serial);
  return result;
}

void Disk::remove_kept() {
  visit_kept([&](const std::string& name, std::uint64_t, bool) { folder_->files().remove_file(name); });
}

std::shared_ptr<DiskFile> Disk::adopt(const Found& found, Reservation room) {
  auto file = std::make_shared<DiskFile>(*this, folder_, found.serial, std::move(room));
  file->description_ = found.description;
  file->exists_ = true;
  file->room.hold();
  return file;
}

}  // namespace reprise::internal
