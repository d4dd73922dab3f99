#include "trace/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

namespace reprise::internal {
namespace {

namespace fs = std::filesystem;

// Returns what an errno means. Not std::strerror: another thread may be using its text.
std::string reason_of(int code) {
  return std::generic_category().message(code);
}

// Calls again as long as a signal interrupts the call.
template <class Call>
auto uninterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

// Applies the rule that Linux has for folders such as /tmp: a link is followed if it is the user's own, or if the
// folder is of the user who made it.
bool may_follow(const fs::path& link) {
  struct stat own = {}, folder = {};
  if (::lstat(link.c_str(), &own) != 0 || !S_ISLNK(own.st_mode) || own.st_uid == ::geteuid()) return true;
  const fs::path parent = link.parent_path();
  return ::stat(parent.empty() ? "." : parent.c_str(), &folder) == 0 && folder.st_uid == own.st_uid;
}

}  // namespace

WholeFile::WholeFile(fs::path path, Kind kind) : path_(std::move(path)) {
  try {
    find_target(kind);
  } catch (...) {
    if (folder_ >= 0) ::close(folder_);
    throw;
  }
}

void WholeFile::find_target(Kind kind) {
  fs::path target = path_;
  if (kind == Kind::of_folder) {
    mode_ = 0600;
  } else {
    if (!may_follow(path_)) fail("it is a link that another user made");
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (fs::is_directory(status)) fail("it is a folder");
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      file_ = uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); });
      if (file_ < 0) fail(reason_of(errno));
      return;
    }
    if (fs::exists(status)) {
      target = fs::canonical(path_, error);
      if (error) fail(error.message());
      if (::access(target.c_str(), W_OK) != 0) fail(reason_of(errno));
      replaces_ = true;
      mode_ = static_cast<unsigned>(status.permissions() & fs::perms::mask);
    }
  }
  const fs::path parent = target.parent_path();
  folder_ = ::open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) fail(reason_of(errno));
  name_ = target.filename().string();
  create_beside();
}

// The mode is never wider than the one in the end: the umask may only have taken something away, which is given back as
// far as the file system has modes.
void WholeFile::create_beside() {
  std::random_device random;
  do {
    beside_ = fmt::format("{}.{:08x}.new", name_, static_cast<std::uint32_t>(random()));
    file_ = uninterrupted([&] {
      return ::openat(folder_, beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_ & 0777);
    });
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) fail(reason_of(errno));
  if (replaces_) static_cast<void>(::fchmod(file_, mode_));
}

WholeFile::~WholeFile() {
  if (file_ >= 0) ::close(file_);
  if (!beside_.empty()) ::unlinkat(folder_, beside_.c_str(), 0);
  if (folder_ >= 0) ::close(folder_);
}

void WholeFile::write(std::string_view text) {
  while (!text.empty()) {
    const auto done = uninterrupted([&] { return ::write(file_, text.data(), text.size()); });
    if (done <= 0) fail(reason_of(done < 0 ? errno : EIO));
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

void WholeFile::commit() {
  const bool direct = name_.empty();
  if (!direct && uninterrupted([&] { return ::fsync(file_); }) != 0) fail(reason_of(errno));
  // After EINTR the descriptor is closed as well.
  if (::close(std::exchange(file_, -1)) != 0 && errno != EINTR) fail(reason_of(errno));
  if (direct) return;
  if (::renameat(folder_, beside_.c_str(), folder_, name_.c_str()) != 0) fail(reason_of(errno));
  beside_.clear();
  // Some file systems cannot sync a folder, and a user who may write to a folder may not be able to read it.
  const int folder = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const bool failed = ::fsync(folder) != 0 && errno == EIO;
  ::close(folder);
  if (failed) fail(reason_of(EIO));
}

void WholeFile::fail(const std::string& reason) const {
  throw Error(fmt::format("{}: cannot be written: {}", path_.string(), reason));
}

}  // namespace reprise::internal
