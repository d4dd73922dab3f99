#include "torch/memory/shared_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

SharedPages::SharedPages(std::size_t window)
    : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), window_(rounded_up(window, page_)) {
  file_ = memfd_create("reprise", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(window_)) != 0) {
    throw Error("[measure] there is no memory for tensors to share: " + std::string(std::strerror(errno)));
  }
}

void* SharedPages::allocate(std::size_t bytes) {
  // One page more than asked for: fast kernels read a little beyond the end, where a heap has something as well.
  const std::size_t whole = page_ + rounded_up(bytes - own, page_) + page_;
  std::byte* const start = map(whole);
  if (!start) return nullptr;
  void* const piece = start + page_ - own;
  ranges_[piece] = {start, whole, false};
  return piece;
}

void SharedPages::release(void* piece) {
  const auto at = ranges_.find(piece);
  munmap(at->second.start, at->second.bytes);
  ranges_.erase(at);
}

bool SharedPages::clear(void* piece) {
  const auto at = ranges_.find(piece);
  if (at == ranges_.end() || at->second.cleared) return true;
  PageRange& range = at->second;
  range.cleared = mmap(range.start + page_, range.bytes - page_, PROT_READ | PROT_WRITE,
                       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  return range.cleared;
}

// Addresses first, which do not count as memory; then one page of its own, and the window.
std::byte* SharedPages::map(std::size_t bytes) {
  void* const reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(reserved);
  if (mprotect(start, page_, PROT_READ | PROT_WRITE) == 0 && map_window(start + page_, bytes - page_)) return start;
  munmap(start, bytes);
  return nullptr;
}

bool SharedPages::map_window(std::byte* start, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, window_ - priority_);
    if (mmap(start + done, part, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, file_,
             static_cast<off_t>(priority_)) == MAP_FAILED) {
      return false;
    }
    done += part;
    priority_ = (priority_ + part) % window_;
  }
  return true;
}

}  // namespace reprise::internal
